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
#include <math.h>

#include "optim/optim.h"
#include "tensor/vector.h"

typedef struct lars {
    double momentum, trust;
    bool exclude;
} lars;

static const co_key lars_keys[] = {
    {.name = "momentum",
     .type = CO_KEY_REAL,
     .offset = offsetof(lars, momentum),
     .fallback = "0.9",
     .min = 0,
     .max = 1,
     .help = "share of the velocity that is kept from update to update"},
    {.name = "trust",
     .type = CO_KEY_REAL,
     .offset = offsetof(lars, trust),
     .fallback = "0.001",
     .min = 0,
     .max = 1e6,
     .help =
         "trust coefficient: norm of an update at rate 1, as a fraction of the norm of the tensor"},
    {.name = "exclude_norm_bias",
     .type = CO_KEY_BOOL,
     .offset = offsetof(lars, exclude),
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

static double lars_ratio(const lars *s, const co_update *u)
{
    const co_vector_ops *vector = co_vector_host();
    double p, g;

    vector->sum_squares(NULL, &p, NULL, u->param, u->n, NULL);
    vector->sum_squares(NULL, &g, NULL, u->grad, u->n, &u->values->rule);
    p = sqrt(p);
    g = sqrt(g);
    if ((s->exclude && u->kind != CO_PARAM_WEIGHT) || p == 0 || g == 0)
        return 1;
    return s->trust * p / (g + u->decay * p);
}

static void lars_move(float *restrict p, const float *restrict g, float *restrict v, size_t n,
                      float momentum, float rate, float decay, co_grad_rule rule)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + rate * (co_grad_use(g[i], rule) + decay * p[i]);
        p[i] -= v[i];
    }
}

static void lars_update(const void *self, const co_update *u)
{
    const lars *s = self;

    lars_move(u->param, u->grad, u->state[0], u->n, (float)s->momentum,
              (float)(u->values->given.lr * lars_ratio(s, u)), (float)u->decay, u->values->rule);
}

const co_optimizer_ops co_optimizer_lars = {
    .name = "lars",
    .summary = "momentum SGD with a rate for each tensor by its norms, for large batches (LARS)",
    .keys = lars_keys,
    .default_lr = 1,
    .self_size = sizeof(lars),
    .states = lars_count_states,
    .state_names = lars_states,
    .per_tensor = true,
    .update = lars_update,
};
