/*
 * adadelta.c - steps whose size follows those made so far (Zeiler, arXiv:1212.5701), as PyTorch
 * has it:
 *
 *   d = g + weight_decay p
 *   v = rho v + (1 - rho) d^2
 *   s = sqrt(u + eps) / sqrt(v + eps) d
 *   u = rho u + (1 - rho) s^2
 *   p = p - lr s
 */
#include <math.h>

#include "optim/optim.h"

typedef struct adadelta {
    double rho, eps;
} adadelta;

static const co_key adadelta_keys[] = {
    {.name = "rho",
     .type = CO_KEY_REAL,
     .offset = offsetof(adadelta, rho),
     .fallback = "0.9",
     .min = 0,
     .max = 1,
     .help = "share of the mean squares of gradients and of steps that is kept"},
    {.name = "eps",
     .type = CO_KEY_REAL,
     .offset = offsetof(adadelta, eps),
     .fallback = "1e-6",
     .min = 1e-30,
     .max = 1e6,
     .help = "added to both mean squares before the root: it sets the first steps' size"},
    CO_KEYS_END,
};

static const char *const adadelta_states[] = {"square_avg", "acc_delta", NULL};

static int adadelta_count_states(const void *self)
{
    (void)self;
    return 2;
}

typedef struct adadelta_rates {
    float lr, decay, rho, rest, eps;
    co_grad_rule rule;
} adadelta_rates;

static void adadelta_move(float *restrict p, const float *restrict g, float *restrict v,
                          float *restrict u, size_t n, const adadelta_rates *rates)
{
    const adadelta_rates r = *rates;

    for (size_t i = 0; i < n; i++) {
        const float d = co_grad_use(g[i], r.rule) + r.decay * p[i];
        float s;

        v[i] = r.rho * v[i] + r.rest * (d * d);
        s = sqrtf(u[i] + r.eps) / sqrtf(v[i] + r.eps) * d;
        u[i] = r.rho * u[i] + r.rest * (s * s);
        p[i] -= r.lr * s;
    }
}

static void adadelta_update(const void *self, const co_update *u)
{
    const adadelta *a = self;
    const adadelta_rates rates = {.lr = (float)u->values->given.lr,
                                  .decay = (float)u->decay,
                                  .rho = (float)a->rho,
                                  .rest = (float)(1 - a->rho),
                                  .eps = (float)a->eps,
                                  .rule = u->values->rule};

    adadelta_move(u->param, u->grad, u->state[0], u->state[1], u->n, &rates);
}

const co_optimizer_ops co_optimizer_adadelta = {
    .name = "adadelta",
    .summary = "Adadelta: steps sized by those made so far; weight decay as a part of the gradient",
    .keys = adadelta_keys,
    .default_lr = 1,
    .self_size = sizeof(adadelta),
    .states = adadelta_count_states,
    .state_names = adadelta_states,
    .update = adadelta_update,
};
