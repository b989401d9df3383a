/*
 * vgg.c - VGG networks (Simonyan & Zisserman, arXiv:1409.1556) with the tensors of torchvision's:
 * parameters, names and first values. Images of at least 32 x 32.
 *
 * 3x3 convolutions, each with ReLU, or with batch norm and ReLU; five times halved by max pooling;
 * then averaged to 7 x 7 and three linear layers.
 */
#include <inttypes.h>

#include "models/models.h"

#define VGG_STAGES 5

typedef struct vgg {
    double dropout, bn_momentum;
} vgg;

typedef struct vgg_variant {
    int convolutions[VGG_STAGES]; /* in each stage */
    bool batch_norm;
} vgg_variant;

#define VGG_DROPOUT_KEY                                                                            \
    {                                                                                              \
        .name = "dropout", .type = CO_KEY_REAL, .offset = offsetof(vgg, dropout),                  \
        .fallback = "0.5", .min = 0, .max = 1,                                                     \
        .help = "probability of dropping an element after each of the first two linear layers"     \
    }

static const co_key vgg_keys[] = {VGG_DROPOUT_KEY, CO_KEYS_END};

static const co_key vgg_bn_keys[] = {
    VGG_DROPOUT_KEY,
    {.name = "bn_momentum",
     .type = CO_KEY_REAL,
     .offset = offsetof(vgg, bn_momentum),
     .fallback = "0.1",
     .min = 0,
     .max = 1,
     .help = "weight of a new batch in the running statistics"},
    CO_KEYS_END,
};

/* A convolution; its number and that of its norm count every layer since the first. */
static co_status vgg_conv(co_builder *b, const vgg *m, int *layer, int out)
{
    const vgg_variant *variant = b->variant;
    co_arena *arena = co_config_arena(b->config);
    const char *conv = co_arena_printf(arena, "features.%d", *layer);
    const char *norm = co_arena_printf(arena, "features.%d", *layer + 1);

    if (!conv || !norm)
        return CO_E_NOMEM;
    CO_TRY(co_build_format(b, "conv2d", conv,
                           "{out: %d, kernel: 3, padding: 1, init: kaiming_normal, "
                           "bias_init: zero}",
                           out));
    if (variant->batch_norm)
        CO_TRY(co_build_format(b, "batchnorm", norm, "{momentum: %.17g}", m->bn_momentum));
    *layer += variant->batch_norm ? 3 : 2;
    return co_build(b, "relu", NULL, NULL);
}

static co_status vgg_linear(co_builder *b, const char *name, int64_t out)
{
    return co_build_format(b, "linear", name, "{out: %" PRId64 ", init: normal, bias_init: zero}",
                           out);
}

static co_status vgg_classifier(co_builder *b, const vgg *m)
{
    CO_TRY(co_build(b, "flatten", NULL, NULL));
    CO_TRY(vgg_linear(b, "classifier.0", 4096));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build_format(b, "dropout", NULL, "{p: %.17g}", m->dropout));
    CO_TRY(vgg_linear(b, "classifier.3", 4096));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build_format(b, "dropout", NULL, "{p: %.17g}", m->dropout));
    return vgg_linear(b, "classifier.6", b->classes);
}

static co_status vgg_build(const void *self, co_builder *b)
{
    static const int channels[VGG_STAGES] = {64, 128, 256, 512, 512};
    const vgg_variant *variant = b->variant;
    int layer = 0;

    for (int stage = 0; stage < VGG_STAGES; stage++) {
        for (int i = 0; i < variant->convolutions[stage]; i++)
            CO_TRY(vgg_conv(b, self, &layer, channels[stage]));
        CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
        layer++;
    }
    CO_TRY(co_build(b, "adaptive_avgpool", NULL, "{size: 7}"));
    return vgg_classifier(b, self);
}

#define VGG(symbol, title, layers, keys_of, ...)                                                   \
    static const vgg_variant vgg_##symbol = __VA_ARGS__;                                           \
    const co_model_ops co_model_vgg##symbol = {                                                    \
        .name = "vgg" title,                                                                       \
        .summary = "VGG with " layers ", as torchvision's",                                        \
        .keys = keys_of,                                                                           \
        .self_size = sizeof(vgg),                                                                  \
        .variant = &vgg_##symbol,                                                                  \
        .sample = {3, {3, 224, 224}},                                                              \
        .build = vgg_build,                                                                        \
    }

VGG(11, "11", "11 layers", vgg_keys, {{1, 1, 2, 2, 2}, false});
VGG(13, "13", "13 layers", vgg_keys, {{2, 2, 2, 2, 2}, false});
VGG(16, "16", "16 layers", vgg_keys, {{2, 2, 3, 3, 3}, false});
VGG(19, "19", "19 layers", vgg_keys, {{2, 2, 4, 4, 4}, false});
VGG(11_bn, "11-bn", "11 layers and batch norm", vgg_bn_keys, {{1, 1, 2, 2, 2}, true});
VGG(13_bn, "13-bn", "13 layers and batch norm", vgg_bn_keys, {{2, 2, 2, 2, 2}, true});
VGG(16_bn, "16-bn", "16 layers and batch norm", vgg_bn_keys, {{2, 2, 3, 3, 3}, true});
VGG(19_bn, "19-bn", "19 layers and batch norm", vgg_bn_keys, {{2, 2, 4, 4, 4}, true});
