/*
 * moments.c - the step that adam and adamw share.
 */
#include "optim/moments.h"

#include <math.h>

#include "core/isa.h"

const co_key co_moments_keys[] = {
    {"betas", CO_KEY_REALS, offsetof(moments, betas), "[0.9, 0.999]", 0, 1, NULL,
     MOMENTS_BETAS_HELP},
    {"eps", CO_KEY_REAL, offsetof(moments, eps), "1e-8", MOMENTS_MIN_EPS, 1e6, NULL,
     MOMENTS_EPS_HELP},
    CO_KEYS_END,
};

const char *const co_moments_states[] = {"exp_avg", "exp_avg_sq", NULL};

co_status co_moments_check(const moments *m, const char *name)
{
    if (m->betas.n != 2 || m->betas.v[0] >= 1 || m->betas.v[1] >= 1)
        return co_fail(CO_E_USAGE,
                       "optimizer %s: betas are two numbers below 1, such as "
                       "[0.9, 0.999]",
                       name);
    return CO_OK;
}

int co_moments_count_states(const void *self)
{
    (void)self;
    return 2;
}

typedef struct moments_rates {
    float beta1, beta2, rest1, rest2, keep, decay, lr, root, eps;
    co_grad_rule rule;
} moments_rates;

#ifdef __x86_64__
#define MOMENTS_AVX2 __attribute__((target("avx2")))
#else
#define MOMENTS_AVX2
#endif

/* Inlined below, so that each copy is compiled for its own instruction set. */
static inline __attribute__((always_inline)) void moments_step(float *restrict p,
                                                               const float *restrict g,
                                                               float *restrict m, float *restrict v,
                                                               size_t n, const moments_rates *rates)
{
    const moments_rates r = *rates;

    for (size_t i = 0; i < n; i++) {
        const float w = p[i] * r.keep, d = co_grad_use(g[i], r.rule) + r.decay * w;

        m[i] = r.beta1 * m[i] + r.rest1 * d;
        v[i] = r.beta2 * v[i] + r.rest2 * (d * d);
        p[i] = w - r.lr * (m[i] / (sqrtf(v[i]) / r.root + r.eps));
    }
}

static void moments_move(float *p, const float *g, float *m, float *v, size_t n,
                         const moments_rates *rates)
{
    moments_step(p, g, m, v, n, rates);
}

/* Two divisions and a root bind this loop: twice as many at once, with the same bits. */
MOMENTS_AVX2 static void moments_move_avx2(float *p, const float *g, float *m, float *v, size_t n,
                                           const moments_rates *rates)
{
    moments_step(p, g, m, v, n, rates);
}

void co_moments_update(const moments *m, const co_update *u, double keep, double decay)
{
    const double beta1 = m->betas.v[0], beta2 = m->betas.v[1], t = (double)u->values->update;
    const moments_rates rates = {.beta1 = (float)beta1,
                                 .beta2 = (float)beta2,
                                 .rest1 = (float)(1 - beta1),
                                 .rest2 = (float)(1 - beta2),
                                 .keep = (float)keep,
                                 .decay = (float)decay,
                                 .lr = (float)(u->values->given.lr / (1 - pow(beta1, t))),
                                 .root = (float)sqrt(1 - pow(beta2, t)),
                                 .eps = (float)m->eps,
                                 .rule = u->values->rule};

    (co_isa_has(CO_ISA_AVX2) ? moments_move_avx2 : moments_move)(u->param, u->grad, u->state[0],
                                                                 u->state[1], u->n, &rates);
}
