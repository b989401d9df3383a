/*
 * psgd_cnn.c - the network of a course's laboratory on parallelised SGD and HogWild: 213,194
 * parameters on (1, 32, 32), MNIST resized.
 *
 *   conv1 (16, 28, 28) -> pool (16, 14, 14) -> relu
 *   conv2 (32, 10, 10) -> pool (32, 5, 5) -> relu -> dropout -> pool (32, 2, 2)
 *   FC1 512 -> relu -> FC2 256 -> Output -> log_softmax
 *
 * Layers have the laboratory's names, so that its class loads the weights. There is no ReLU between
 * FC2 and Output, as there.
 */
#include <inttypes.h>

#include "models/models.h"

typedef struct psgd_cnn {
    double dropout;
} psgd_cnn;

static const co_key psgd_cnn_keys[] = {
    {.name = "dropout",
     .type = CO_KEY_REAL,
     .offset = offsetof(psgd_cnn, dropout),
     .fallback = "0.4",
     .min = 0,
     .max = 1,
     .help = "probability of dropping an element after the second convolution"},
    CO_KEYS_END,
};

static co_status psgd_cnn_build(const void *self, co_builder *b)
{
    const psgd_cnn *m = self;
    co_arena *arena = co_config_arena(b->config);
    const char *dropout = co_arena_printf(arena, "{p: %.17g}", m->dropout);
    const char *output = co_arena_printf(arena, "{out: %" PRId64 "}", b->classes);

    if (!dropout || !output)
        return CO_E_NOMEM;
    CO_TRY(co_build(b, "conv2d", "conv1", "{out: 16, kernel: 5}"));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "conv2d", "conv2", "{out: 32, kernel: 5}"));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "dropout", "drop", dropout));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(co_build(b, "flatten", NULL, NULL));
    CO_TRY(co_build(b, "linear", "FC1", "{out: 512}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "linear", "FC2", "{out: 256}"));
    CO_TRY(co_build(b, "linear", "Output", output));
    return co_build(b, "log_softmax", NULL, NULL);
}

static const co_former_name psgd_cnn_former[] = {
    {"fc1", "FC1"},
    {"fc2", "FC2"},
    {"fc3", "Output"},
    {NULL, NULL},
};

const co_model_ops co_model_psgd_cnn = {
    .name = "psgd-cnn",
    .summary = "two convolutions, three linear layers, dropout; for MNIST at 32 x 32",
    .keys = psgd_cnn_keys,
    .self_size = sizeof(psgd_cnn),
    .sample = {3, {1, 32, 32}},
    .build = psgd_cnn_build,
    .former = psgd_cnn_former,
};
