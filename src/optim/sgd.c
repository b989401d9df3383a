/*
 * sgd.c - stochastic gradient descent, with momentum in PyTorch's convention:
 *
 *   d = g + weight_decay p
 *   v = d at the first update, momentum v + (1 - dampening) d from then on
 *   p = p - lr v                     (Nesterov: p - lr (d + momentum v))
 *
 * So the rate scales the whole velocity (Sutskever et al., ICML 2013, scale the gradient alone).
 */
#include "kernels/update/update.h"
#include "optim/optim.h"

static const co_key sgd_keys[] = {
    {.name = "momentum",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_sgd, momentum),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "share of the velocity that is kept from update to update"},
    {.name = "dampening",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_sgd, dampening),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "fraction of each gradient, except the first, that does not enter the velocity"},
    {.name = "dampen_first",
     .type = CO_KEY_BOOL,
     .offset = offsetof(co_sgd, dampen_first),
     .fallback = "false",
     .help = "dampen the first gradient too, as needle does; PyTorch takes it whole"},
    {.name = "nesterov",
     .type = CO_KEY_BOOL,
     .offset = offsetof(co_sgd, nesterov),
     .fallback = "false",
     .help = "look ahead along the velocity; needs momentum, and no dampening"},
    CO_KEYS_END,
};

static const char *const sgd_states[] = {"momentum_buffer", NULL};

static co_status sgd_check(const void *self)
{
    const co_sgd *s = self;

    if (s->nesterov && (s->momentum <= 0 || s->dampening > 0))
        return co_fail(CO_E_USAGE, "optimizer sgd: nesterov needs momentum above 0 and no "
                                   "dampening");
    return CO_OK;
}

static int sgd_count_states(const void *self)
{
    return ((const co_sgd *)self)->momentum > 0;
}

static void sgd_move(float *restrict p, const float *restrict g, size_t n, co_sgd_rates rates)
{
    for (size_t i = 0; i < n; i++)
        co_sgd_move(p + i, g[i], &rates);
}

static void sgd_move_with_velocity(float *restrict p, const float *restrict g, float *restrict v,
                                   size_t n, co_sgd_rates rates)
{
    for (size_t i = 0; i < n; i++)
        co_sgd_move_with_velocity(p + i, v + i, g[i], &rates);
}

static void sgd_update(const void *self, const co_update *u)
{
    const co_sgd *s = self;
    const co_sgd_rates rates = co_sgd_rates_of(s, u->values, u->missed, u->decay);

    if (s->momentum > 0)
        sgd_move_with_velocity(u->param, u->grad, u->state[0], u->n, rates);
    else
        sgd_move(u->param, u->grad, u->n, rates);
}

const co_optimizer_ops co_optimizer_sgd = {
    .name = "sgd",
    .summary = "stochastic gradient descent, with momentum and Nesterov's look-ahead",
    .keys = sgd_keys,
    .default_lr = 0.01,
    .self_size = sizeof(co_sgd),
    .check = sgd_check,
    .states = sgd_count_states,
    .state_names = sgd_states,
    .update = sgd_update,
};
