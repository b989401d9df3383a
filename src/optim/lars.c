/*
 * lars.c - momentum SGD with a rate for each tensor, for large batches (LARS: You, Gitman &
 * Ginsburg, arXiv:1708.03888, algorithm 1):
 *
 *   ratio = trust |p| / (|g| + weight_decay |p|)
 *   v = momentum v + lr ratio (g + weight_decay p)
 *   p = p - v
 *
 * As in the paper the rate is a part of the velocity; NVIDIA's LARC, which scales the gradient in
 * front of PyTorch's SGD, differs where the rate changes. A tensor whose weights or gradients are
 * all 0 has no ratio: 1 is taken, as the authors' code does.
 */
#include "kernels/update/update.h"
#include "optim/optim.h"
#include "tensor/vector.h"

static const co_key lars_keys[] = {
    {.name = "momentum",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_lars, momentum),
     .fallback = "0.9",
     .min = 0,
     .max = 1,
     .help = "share of the velocity that is kept from update to update"},
    {.name = "trust",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_lars, trust),
     .fallback = "0.001",
     .min = 0,
     .max = 1e6,
     .help =
         "trust coefficient: norm of an update at rate 1, as a fraction of the norm of the tensor"},
    {.name = "exclude_norm_bias",
     .type = CO_KEY_BOOL,
     .offset = offsetof(co_lars, exclude),
     .fallback = "false",
     .help = "ratio 1 for norms and biases: plain momentum SGD at rate lr"},
    CO_KEYS_END,
};

static const char *const lars_states[] = {"momentum_buffer", NULL};

static int lars_count_states(const void *self)
{
    (void)self;
    return 1;
}

static void lars_move(float *restrict p, const float *restrict g, float *restrict v, size_t n,
                      const co_lars_rates *rates)
{
    const co_lars_rates r = *rates;

    for (size_t i = 0; i < n; i++)
        co_lars_move(p + i, v + i, g[i], &r);
}

static void lars_update(const void *self, const co_update *u)
{
    const co_vector_ops *vector = co_vector_host();
    const co_lars *l = self;
    double p, g;
    co_lars_rates rates;

    vector->sum_squares(NULL, &p, NULL, u->param, u->n, NULL);
    vector->sum_squares(NULL, &g, NULL, u->grad, u->n, &u->values->rule);
    rates =
        co_lars_rates_of(l, u->values, u->decay, l->exclude && u->kind != CO_PARAM_WEIGHT, p, g);
    lars_move(u->param, u->grad, u->state[0], u->n, &rates);
}

const co_optimizer_ops co_optimizer_lars = {
    .name = "lars",
    .summary = "momentum SGD with a rate for each tensor by its norms, for large batches (LARS)",
    .keys = lars_keys,
    .default_lr = 1,
    .self_size = sizeof(co_lars),
    .states = lars_count_states,
    .state_names = lars_states,
    .per_tensor = true,
    .update = lars_update,
};
