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
#include <math.h>

#include "optim/moments.h"
#include "optim/optim.h"
#include "tensor/vector.h"

typedef struct lamb {
    co_moments moments; /* first: co_moments_count_states */
    bool exclude;
} lamb;

static const co_key lamb_keys[] = {
    {"betas", CO_KEY_REALS, offsetof(lamb, moments.betas), "[0.9, 0.999]", 0, 1, NULL,
     MOMENTS_BETAS_HELP},
    {"eps", CO_KEY_REAL, offsetof(lamb, moments.eps), "1e-6", MOMENTS_MIN_EPS, 1e6, NULL,
     MOMENTS_EPS_HELP},
    {"exclude_norm_bias", CO_KEY_BOOL, offsetof(lamb, exclude), "false", 0, 0, NULL,
     "ratio 1 for norms and biases: plain Adam at rate lr"},
    CO_KEYS_END,
};

#define LAMB_LANES 8

static co_status lamb_check(const void *self)
{
    return co_moments_check(self, "lamb");
}

typedef struct lamb_rates {
    float beta1, beta2, rest1, rest2, scale1, scale2, eps, decay;
    co_grad_rule rule;
} lamb_rates;

static lamb_rates lamb_rates_of(const lamb *l, const co_update *u)
{
    const double beta1 = l->moments.betas.v[0], beta2 = l->moments.betas.v[1],
                 t = (double)u->values->update;

    return (lamb_rates){.beta1 = (float)beta1,
                        .beta2 = (float)beta2,
                        .rest1 = (float)(1 - beta1),
                        .rest2 = (float)(1 - beta2),
                        .scale1 = (float)(1 / (1 - pow(beta1, t))),
                        .scale2 = (float)(1 / (1 - pow(beta2, t))),
                        .eps = (float)l->moments.eps,
                        .decay = (float)u->decay,
                        .rule = u->values->rule};
}

static inline float lamb_step(float p, float m, float v, const lamb_rates *r)
{
    return m * r->scale1 / (sqrtf(v * r->scale2) + r->eps) + r->decay * p;
}

static void lamb_take(const float *restrict g, float *restrict m, float *restrict v, size_t n,
                      const lamb_rates *rates)
{
    const lamb_rates r = *rates;

    for (size_t i = 0; i < n; i++) {
        const float d = co_grad_use(g[i], r.rule);

        m[i] = r.beta1 * m[i] + r.rest1 * d;
        v[i] = r.beta2 * v[i] + r.rest2 * (d * d);
    }
}

/* |r|^2, in an order that depends on n alone. */
static double lamb_sum_squares(const co_update *u, const lamb_rates *rates)
{
    const float *p = u->param, *m = u->state[0], *v = u->state[1];
    const lamb_rates r = *rates;
    double lane[LAMB_LANES] = {0}, sum = 0;

    for (size_t i = 0; i < u->n; i++) {
        const double step = (double)lamb_step(p[i], m[i], v[i], &r);

        lane[i % LAMB_LANES] += step * step;
    }
    for (size_t k = 0; k < LAMB_LANES; k++)
        sum += lane[k];
    return sum;
}

static void lamb_move(float *restrict p, const float *restrict m, const float *restrict v, size_t n,
                      float rate, const lamb_rates *rates)
{
    const lamb_rates r = *rates;

    for (size_t i = 0; i < n; i++)
        p[i] -= rate * lamb_step(p[i], m[i], v[i], &r);
}

static void lamb_update(const void *self, const co_update *u)
{
    const lamb *l = self;
    const lamb_rates rates = lamb_rates_of(l, u);
    double ratio = 1;

    lamb_take(u->grad, u->state[0], u->state[1], u->n, &rates);
    if (!l->exclude || u->kind == CO_PARAM_WEIGHT) {
        const double r = lamb_sum_squares(u, &rates);
        double p;

        co_vector_host()->sum_squares(NULL, &p, NULL, u->param, u->n, NULL);
        if (p > 0 && r > 0)
            ratio = sqrt(p / r);
    }
    lamb_move(u->param, u->state[0], u->state[1], u->n, (float)(u->values->given.lr * ratio),
              &rates);
}

const co_optimizer_ops co_optimizer_lamb = {
    .name = "lamb",
    .summary = "Adam with a rate for each tensor by its norms, for large batches (LAMB)",
    .keys = lamb_keys,
    .default_lr = 0.001,
    .default_decay = 0.01,
    .self_size = sizeof(lamb),
    .check = lamb_check,
    .states = co_moments_count_states,
    .state_names = co_moments_states,
    .per_tensor = true,
    .update = lamb_update,
};
