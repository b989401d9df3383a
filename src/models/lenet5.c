/*
 * lenet5.c - LeNet-5 (LeCun et al., "Gradient-based learning applied to document recognition",
 * 1998) with max pooling and ReLU: 61,706 parameters on (1, 32, 32), or on (1, 28, 28) with
 * padding 2; 44,426 on (1, 28, 28) without.
 *
 *   conv1 6 -> pool -> relu -> conv2 16 -> pool -> relu -> fc1 120 -> fc2 84 -> fc3 -> log_softmax
 */
#include <inttypes.h>

#include "models/models.h"

typedef struct lenet5 {
    int64_t padding;
} lenet5;

static const co_key lenet5_keys[] = {
    {.name = "padding",
     .type = CO_KEY_INT,
     .offset = offsetof(lenet5, padding),
     .fallback = "0",
     .min = 0,
     .max = 16,
     .help = "pixels of zeros around the image; 2 makes the paper's 32 x 32 of 28 x 28"},
    CO_KEYS_END,
};

static co_status lenet5_build(const void *self, co_builder *b)
{
    const lenet5 *m = self;
    co_arena *arena = co_config_arena(b->config);
    const char *conv1 =
        co_arena_printf(arena, "{out: 6, kernel: 5, padding: %" PRId64 "}", m->padding);
    const char *fc3 = co_arena_printf(arena, "{out: %" PRId64 "}", b->classes);

    if (!conv1 || !fc3)
        return CO_E_NOMEM;
    CO_TRY(co_build(b, "conv2d", "conv1", conv1));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "conv2d", "conv2", "{out: 16, kernel: 5}"));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "flatten", NULL, NULL));
    CO_TRY(co_build(b, "linear", "fc1", "{out: 120}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "linear", "fc2", "{out: 84}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "linear", "fc3", fc3));
    return co_build(b, "log_softmax", NULL, NULL);
}

const co_model_ops co_model_lenet5 = {
    .name = "lenet5",
    .summary = "LeNet-5 with max pooling and ReLU, for 28 x 28 or 32 x 32",
    .keys = lenet5_keys,
    .self_size = sizeof(lenet5),
    .sample = {3, {1, 28, 28}},
    .build = lenet5_build,
};
