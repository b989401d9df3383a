/*
 * resnet.c - residual networks (He et al., arXiv:1512.03385) with the tensors of torchvision's:
 * parameters, names and first values.
 *
 *   basic       x -> conv1 3x3 -> bn1 -> relu -> conv2 3x3 -> bn2 -> + x -> relu
 *   bottleneck  x -> conv1 1x1 -> bn1 -> relu -> conv2 3x3 -> bn2 -> relu -> conv3 1x1 -> bn3
 *                 -> + x -> relu; the 3x3 convolution has the stride ("v1.5")
 *
 * A 1x1 convolution and a norm (downsample) are in the way of x where its shape changes. The stem
 * `cifar` is for small images: the paper's for CIFAR, a 3x3 convolution and no pooling.
 */
#include <inttypes.h>

#include "models/models.h"

enum { STEM_IMAGENET, STEM_CIFAR };

typedef struct resnet {
    int stem;
    int64_t width;
    bool zero_init_residual;
    double bn_momentum;
} resnet;

typedef struct resnet_depth {
    int blocks[4];
    bool bottleneck;
} resnet_depth;

static const char *const resnet_stems[] = {"imagenet", "cifar", NULL};

static const co_key resnet_keys[] = {
    {.name = "stem",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(resnet, stem),
     .fallback = "imagenet",
     .choices = resnet_stems,
     .help = "imagenet: 7x7 convolution of stride 2 and max pooling; cifar: 3x3, for small images"},
    {.name = "width",
     .type = CO_KEY_INT,
     .offset = offsetof(resnet, width),
     .fallback = "64",
     .min = 1,
     .max = 4096,
     .help = "channels of the first stage; each later stage has twice as many"},
    {.name = "zero_init_residual",
     .type = CO_KEY_BOOL,
     .offset = offsetof(resnet, zero_init_residual),
     .fallback = "false",
     .help = "start each block as the identity: the weight of its last norm is 0"},
    {.name = "bn_momentum",
     .type = CO_KEY_REAL,
     .offset = offsetof(resnet, bn_momentum),
     .fallback = "0.1",
     .min = 0,
     .max = 1,
     .help = "weight of a new batch in the running statistics"},
    CO_KEYS_END,
};

static co_status resnet_conv(co_builder *b, const char *name, int64_t out, int kernel, int stride)
{
    return co_build_format(b, "conv2d", name,
                           "{out: %" PRId64 ", kernel: %d, stride: %d, padding: %d, bias: false, "
                           "init: kaiming_normal}",
                           out, kernel, stride, kernel / 2);
}

static co_status resnet_norm(co_builder *b, const resnet *m, const char *name, bool last)
{
    return co_build_format(b, "batchnorm", name, "{momentum: %.17g, zero_init: %s}", m->bn_momentum,
                           last && m->zero_init_residual ? "true" : "false");
}

static co_status resnet_body(co_builder *b, const resnet *m, int64_t width, int stride)
{
    const bool bottleneck = ((const resnet_depth *)b->variant)->bottleneck;

    CO_TRY(resnet_conv(b, "conv1", width, bottleneck ? 1 : 3, bottleneck ? 1 : stride));
    CO_TRY(resnet_norm(b, m, "bn1", false));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(resnet_conv(b, "conv2", width, 3, bottleneck ? stride : 1));
    CO_TRY(resnet_norm(b, m, "bn2", !bottleneck));
    if (!bottleneck)
        return CO_OK;
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(resnet_conv(b, "conv3", 4 * width, 1, 1));
    return resnet_norm(b, m, "bn3", true);
}

static co_status resnet_block(co_builder *b, const resnet *m, int64_t width, int stride)
{
    const int64_t out = ((const resnet_depth *)b->variant)->bottleneck ? 4 * width : width;
    const bool same = stride == 1 && b->graph->var[b->x].shape.dim[1] == out;
    const int x = b->x;
    int body;

    CO_TRY(resnet_body(b, m, width, stride));
    body = b->x;
    b->x = x;
    if (!same) {
        CO_TRY(resnet_conv(b, "downsample.0", out, 1, stride));
        CO_TRY(resnet_norm(b, m, "downsample.1", false));
    }
    CO_TRY(co_build_add(b, body));
    return co_build(b, "relu", NULL, NULL);
}

static co_status resnet_stem(co_builder *b, const resnet *m)
{
    const bool cifar = m->stem == STEM_CIFAR;

    CO_TRY(resnet_conv(b, "conv1", m->width, cifar ? 3 : 7, cifar ? 1 : 2));
    CO_TRY(resnet_norm(b, m, "bn1", false));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    if (cifar)
        return CO_OK;
    return co_build(b, "maxpool", NULL, "{kernel: 3, stride: 2, padding: 1}");
}

static co_status resnet_build(const void *self, co_builder *b)
{
    const resnet *m = self;
    const resnet_depth *depth = b->variant;

    CO_TRY(resnet_stem(b, m));
    for (int stage = 0; stage < 4; stage++)
        for (int block = 0; block < depth->blocks[stage]; block++) {
            CO_TRY(co_build_begin_block(b, "layer%d.%d.", stage + 1, block));
            CO_TRY(resnet_block(b, m, m->width << stage, stage > 0 && block == 0 ? 2 : 1));
            co_build_end_block(b);
        }
    CO_TRY(co_build(b, "adaptive_avgpool", NULL, "{size: 1}"));
    CO_TRY(co_build(b, "flatten", NULL, NULL));
    return co_build_format(b, "linear", "fc", "{out: %" PRId64 "}", b->classes);
}

static const resnet_depth resnet_depths[] = {
    {{2, 2, 2, 2}, false}, {{3, 4, 6, 3}, false}, {{3, 4, 6, 3}, true},
    {{3, 4, 23, 3}, true}, {{3, 8, 36, 3}, true},
};

#define RESNET(layers, index)                                                                      \
    const co_model_ops co_model_resnet##layers = {                                                 \
        .name = "resnet" #layers,                                                                  \
        .summary = "residual network with " #layers " layers, as torchvision's",                   \
        .keys = resnet_keys,                                                                       \
        .self_size = sizeof(resnet),                                                               \
        .variant = &resnet_depths[index],                                                          \
        .sample = {3, {3, 224, 224}},                                                              \
        .build = resnet_build,                                                                     \
    }

RESNET(18, 0);
RESNET(34, 1);
RESNET(50, 2);
RESNET(101, 3);
RESNET(152, 4);
