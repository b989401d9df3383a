/*
 * moments.h - what adam and adamw share: running means of the gradient and of its square, and a
 * step along the first, scaled by the root of the second (Kingma & Ba, arXiv:1412.6980):
 *
 *   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
 *   p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 *
 * They differ in where the weight decays: in the gradient, or beside it.
 */
#ifndef CO_OPTIM_MOMENTS_H
#define CO_OPTIM_MOMENTS_H

#include <cohort/ext/optim.h>

#include "kernels/update/update.h"

#define MOMENTS_BETAS_HELP "shares of the mean gradient and of its mean square that are kept"
/* 0 would divide 0 by 0 where a gradient has always been 0. */
#define MOMENTS_MIN_EPS  1e-30
#define MOMENTS_EPS_HELP "added to the root of the mean square, so that no step is divided by 0"

extern const co_key co_moments_keys[];
extern const char *const co_moments_states[];

co_status co_moments_check(const co_moments *m, const char *name);
int co_moments_count_states(const void *self);

/* One update of `u`. `beside`: its weight decays beside the gradient. */
void co_moments_update(const co_moments *m, const co_update *u, bool beside);

#endif
