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
#include "kernels/update/update.h"
#include "optim/optim.h"

static const co_key adadelta_keys[] = {
    {.name = "rho",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_adadelta, rho),
     .fallback = "0.9",
     .min = 0,
     .max = 1,
     .help = "share of the mean squares of gradients and of steps that is kept"},
    {.name = "eps",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_adadelta, eps),
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

static void adadelta_move(float *restrict p, const float *restrict g, float *restrict v,
                          float *restrict u, size_t n, co_adadelta_rates rates)
{
    for (size_t i = 0; i < n; i++)
        co_adadelta_move(p + i, v + i, u + i, g[i], &rates);
}

static void adadelta_update(const void *self, const co_update *u)
{
    adadelta_move(u->param, u->grad, u->state[0], u->state[1], u->n,
                  co_adadelta_rates_of(self, u->values, u->decay));
}

const co_optimizer_ops co_optimizer_adadelta = {
    .name = "adadelta",
    .summary = "Adadelta: steps sized by those made so far; weight decay as a part of the gradient",
    .keys = adadelta_keys,
    .default_lr = 1,
    .self_size = sizeof(co_adadelta),
    .states = adadelta_count_states,
    .state_names = adadelta_states,
    .update = adadelta_update,
};
