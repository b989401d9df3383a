/*
 * alexnet.c - AlexNet for one device (Krizhevsky, arXiv:1404.5997), with the tensors of
 * torchvision's: 61,100,840 parameters with 1000 classes. Images of at least 63 x 63.
 */
#include <inttypes.h>

#include "models/models.h"

typedef struct alexnet {
    double dropout;
} alexnet;

static const co_key alexnet_keys[] = {
    {.name = "dropout",
     .type = CO_KEY_REAL,
     .offset = offsetof(alexnet, dropout),
     .fallback = "0.5",
     .min = 0,
     .max = 1,
     .help = "probability of dropping an element before each of the first two linear layers"},
    CO_KEYS_END,
};

static co_status alexnet_features(co_builder *b)
{
    static const char pool[] = "{kernel: 3, stride: 2}";

    CO_TRY(co_build(b, "conv2d", "features.0", "{out: 64, kernel: 11, stride: 4, padding: 2}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "maxpool", NULL, pool));
    CO_TRY(co_build(b, "conv2d", "features.3", "{out: 192, kernel: 5, padding: 2}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "maxpool", NULL, pool));
    CO_TRY(co_build(b, "conv2d", "features.6", "{out: 384, kernel: 3, padding: 1}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "conv2d", "features.8", "{out: 256, kernel: 3, padding: 1}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "conv2d", "features.10", "{out: 256, kernel: 3, padding: 1}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "maxpool", NULL, pool));
    return co_build(b, "adaptive_avgpool", NULL, "{size: 6}");
}

static co_status alexnet_build(const void *self, co_builder *b)
{
    const alexnet *m = self;

    CO_TRY(alexnet_features(b));
    CO_TRY(co_build(b, "flatten", NULL, NULL));
    CO_TRY(co_build_format(b, "dropout", NULL, "{p: %.17g}", m->dropout));
    CO_TRY(co_build(b, "linear", "classifier.1", "{out: 4096}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build_format(b, "dropout", NULL, "{p: %.17g}", m->dropout));
    CO_TRY(co_build(b, "linear", "classifier.4", "{out: 4096}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    return co_build_format(b, "linear", "classifier.6", "{out: %" PRId64 "}", b->classes);
}

const co_model_ops co_model_alexnet = {
    .name = "alexnet",
    .summary = "five convolutions and three linear layers, as torchvision's",
    .keys = alexnet_keys,
    .self_size = sizeof(alexnet),
    .sample = {3, {3, 224, 224}},
    .build = alexnet_build,
};
