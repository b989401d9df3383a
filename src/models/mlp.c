/*
 * mlp.c - a multilayer perceptron: linear layers fc1, fc2, ... with ReLU between them.
 */
#include <inttypes.h>

#include "models/models.h"

#define MLP_MAX_LAYERS 256

typedef struct mlp {
    co_ints hidden;
    double dropout;
} mlp;

static const co_key mlp_keys[] = {
    {.name = "hidden",
     .type = CO_KEY_INTS,
     .offset = offsetof(mlp, hidden),
     .fallback = "128",
     .min = 1,
     .max = 1 << 20,
     .help = "widths of the hidden layers: one number or a list; []: none"},
    {.name = "dropout",
     .type = CO_KEY_REAL,
     .offset = offsetof(mlp, dropout),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "probability of dropping an element after each hidden layer"},
    CO_KEYS_END,
};

/* Linear layer `index`, counted from 1. */
static co_status mlp_add_linear(co_builder *b, size_t index, int64_t out)
{
    co_arena *arena = co_config_arena(b->config);
    const char *name = co_arena_printf(arena, "fc%zu", index);
    const char *attrs = co_arena_printf(arena, "{out: %" PRId64 "}", out);

    if (!name || !attrs)
        return CO_E_NOMEM;
    return co_build(b, "linear", name, attrs);
}

static co_status mlp_build(const void *self, co_builder *b)
{
    const mlp *m = self;
    const char *dropout = co_arena_printf(co_config_arena(b->config), "{p: %.17g}", m->dropout);

    if (!dropout)
        return CO_E_NOMEM;
    if (m->hidden.n > MLP_MAX_LAYERS)
        return co_fail(CO_E_USAGE, "model mlp: key 'hidden': at most %d layers, not %zu",
                       MLP_MAX_LAYERS, m->hidden.n);
    CO_TRY(co_build(b, "flatten", NULL, NULL));
    for (size_t i = 0; i < m->hidden.n; i++) {
        CO_TRY(mlp_add_linear(b, i + 1, m->hidden.v[i]));
        CO_TRY(co_build(b, "relu", NULL, NULL));
        if (m->dropout > 0)
            CO_TRY(co_build(b, "dropout", NULL, dropout));
    }
    return mlp_add_linear(b, m->hidden.n + 1, b->classes);
}

const co_model_ops co_model_mlp = {
    .name = "mlp",
    .summary = "multilayer perceptron: linear layers with ReLU between them",
    .keys = mlp_keys,
    .self_size = sizeof(mlp),
    .sample = {3, {1, 28, 28}},
    .build = mlp_build,
};
