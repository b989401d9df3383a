/*
 * lamb.c - Adam with a rate for each tensor, for large batches (LAMB: You et al.,
 * arXiv:1904.00962, algorithm 2, with phi the identity):
 *
 *   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
 *   r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p
 *   p = p - lr |p| / |r| r
 *
 * A tensor whose weights or steps are all 0 has no ratio |p| / |r|: 1 is taken, as the authors'
 * code does. The gradient is not normalised first, as NVIDIA's variant does: that is `clip`.
 */
#include "kernels/update/update.h"
#include "optim/moments.h"
#include "optim/optim.h"
#include "tensor/vector.h"

static const co_key lamb_keys[] = {
    {"betas", CO_KEY_REALS, offsetof(co_lamb, moments.betas), "[0.9, 0.999]", 0, 1, NULL,
     MOMENTS_BETAS_HELP},
    {"eps", CO_KEY_REAL, offsetof(co_lamb, moments.eps), "1e-6", MOMENTS_MIN_EPS, 1e6, NULL,
     MOMENTS_EPS_HELP},
    {"exclude_norm_bias", CO_KEY_BOOL, offsetof(co_lamb, exclude), "false", 0, 0, NULL,
     "ratio 1 for norms and biases: plain Adam at rate lr"},
    CO_KEYS_END,
};

#define LAMB_LANES 8

static co_status lamb_check(const void *self)
{
    return co_moments_check(self, "lamb");
}

static void lamb_take(const float *restrict g, float *restrict m, float *restrict v, size_t n,
                      const co_lamb_rates *rates)
{
    const co_lamb_rates r = *rates;

    for (size_t i = 0; i < n; i++)
        co_lamb_take(m + i, v + i, g[i], &r);
}

/* |r|^2, in an order that depends on n alone. */
static double lamb_sum_squares(const co_update *u, const co_lamb_rates *rates)
{
    const float *p = u->param, *m = u->state[0], *v = u->state[1];
    const co_lamb_rates r = *rates;
    double lane[LAMB_LANES] = {0}, sum = 0;

    for (size_t i = 0; i < u->n; i++) {
        const double step = (double)co_lamb_step(p[i], m[i], v[i], &r);

        lane[i % LAMB_LANES] += step * step;
    }
    for (size_t k = 0; k < LAMB_LANES; k++)
        sum += lane[k];
    return sum;
}

static void lamb_move(float *restrict p, const float *restrict m, const float *restrict v, size_t n,
                      float rate, const co_lamb_rates *rates)
{
    const co_lamb_rates r = *rates;

    for (size_t i = 0; i < n; i++)
        p[i] -= rate * co_lamb_step(p[i], m[i], v[i], &r);
}

static void lamb_update(const void *self, const co_update *u)
{
    const co_lamb *l = self;
    const bool plain = l->exclude && u->kind != CO_PARAM_WEIGHT;
    const co_lamb_rates rates = co_lamb_rates_of(l->moments.betas.v[0], l->moments.betas.v[1],
                                                 l->moments.eps, u->values, u->missed, u->decay);
    double p = 0, r = 0;

    lamb_take(u->grad, u->state[0], u->state[1], u->n, &rates);
    if (!plain) {
        r = lamb_sum_squares(u, &rates);
        co_vector_host()->sum_squares(NULL, &p, NULL, u->param, u->n, NULL);
    }
    lamb_move(u->param, u->state[0], u->state[1], u->n, co_lamb_rate(u->values, plain, p, r),
              &rates);
}

const co_optimizer_ops co_optimizer_lamb = {
    .name = "lamb",
    .summary = "Adam with a rate for each tensor by its norms, for large batches (LAMB)",
    .keys = lamb_keys,
    .default_lr = 0.001,
    .default_decay = 0.01,
    .self_size = sizeof(co_lamb),
    .check = lamb_check,
    .states = co_moments_count_states,
    .state_names = co_moments_states,
    .per_tensor = true,
    .update = lamb_update,
};
