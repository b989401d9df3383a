/*
 * resnet9_wide.c - the residual network with which D. Page trained CIFAR-10 fastest in DAWNBench
 * ("How to train your ResNet", 2018): 6,573,120 parameters at width 64 with 10 classes.
 *
 *   prep w -> layer1 2w, pool, x + res2(res1(x)) -> layer2 4w, pool
 *   -> layer3 8w, pool, x + res2(res1(x)) -> largest of the image -> linear -> times logit_scale
 *
 * Each name is a 3x3 convolution without bias, batch norm and ReLU; sums have no ReLU. The
 * names of the tensors are those of the published network.
 */
#include <inttypes.h>

#include "models/models.h"

typedef struct resnet9_wide {
    int64_t width;
    double logit_scale, bn_momentum;
} resnet9_wide;

static const co_key resnet9_wide_keys[] = {
    {.name = "width",
     .type = CO_KEY_INT,
     .offset = offsetof(resnet9_wide, width),
     .fallback = "64",
     .min = 1,
     .max = 1024,
     .help = "channels of the first convolution"},
    {.name = "logit_scale",
     .type = CO_KEY_REAL,
     .offset = offsetof(resnet9_wide, logit_scale),
     .fallback = "0.125",
     .min = 1e-6,
     .max = 1e6,
     .help = "what the logits are multiplied by before the loss"},
    {.name = "bn_momentum",
     .type = CO_KEY_REAL,
     .offset = offsetof(resnet9_wide, bn_momentum),
     .fallback = "0.1",
     .min = 0,
     .max = 1,
     .help = "weight of a new batch in the running statistics"},
    CO_KEYS_END,
};

/* One convolution, "layer1.residual.res1": its name and the channels it gives. */
static co_status resnet9_wide_conv(co_builder *b, const resnet9_wide *m, const char *name,
                                   int64_t out)
{
    b->prefix = co_arena_printf(co_config_arena(b->config), "%s.", name);
    if (!b->prefix)
        return CO_E_NOMEM;
    CO_TRY(co_build_format(b, "conv2d", "conv",
                           "{out: %" PRId64 ", kernel: 3, padding: 1, bias: false}", out));
    CO_TRY(co_build_format(b, "batchnorm", "bn", "{momentum: %.17g}", m->bn_momentum));
    return co_build(b, "relu", NULL, NULL);
}

static co_status resnet9_wide_residual(co_builder *b, const resnet9_wide *m, const char *res1,
                                       const char *res2, int64_t out)
{
    const int x = b->x;

    co_graph_begin_block(b->graph);
    CO_TRY(resnet9_wide_conv(b, m, res1, out));
    CO_TRY(resnet9_wide_conv(b, m, res2, out));
    CO_TRY(co_build_add(b, x));
    co_graph_end_block(b->graph);
    return CO_OK;
}

static co_status resnet9_wide_build(const void *self, co_builder *b)
{
    const resnet9_wide *m = self;
    const co_shape *image;

    CO_TRY(resnet9_wide_conv(b, m, "prep", m->width));
    CO_TRY(resnet9_wide_conv(b, m, "layer1", 2 * m->width));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(
        resnet9_wide_residual(b, m, "layer1.residual.res1", "layer1.residual.res2", 2 * m->width));
    CO_TRY(resnet9_wide_conv(b, m, "layer2", 4 * m->width));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(resnet9_wide_conv(b, m, "layer3", 8 * m->width));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(
        resnet9_wide_residual(b, m, "layer3.residual.res1", "layer3.residual.res2", 8 * m->width));
    b->prefix = NULL;
    image = &b->graph->var[b->x].shape;
    CO_TRY(co_build_format(b, "maxpool", NULL, "{kernel: [%" PRId64 ", %" PRId64 "]}",
                           image->dim[2], image->dim[3]));
    CO_TRY(co_build(b, "flatten", NULL, NULL));
    CO_TRY(co_build_format(b, "linear", "linear", "{out: %" PRId64 ", bias: false}", b->classes));
    if (m->logit_scale == 1)
        return CO_OK;
    return co_build_format(b, "scale", NULL, "{factor: %.17g}", m->logit_scale);
}

const co_model_ops co_model_resnet9_wide = {
    .name = "resnet9-wide",
    .summary = "residual network of the fastest DAWNBench entries for CIFAR",
    .keys = resnet9_wide_keys,
    .self_size = sizeof(resnet9_wide),
    .sample = {3, {3, 32, 32}},
    .build = resnet9_wide_build,
};
