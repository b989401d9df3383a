/*
 * resnet9.c - the small residual network of a course's assignment on deep learning systems: 431,946
 * parameters on (3, 32, 32) with 10 classes.
 *
 *   cb1 (16, 8, 8) -> cb2 (32, 4, 4) -> x + cb4(cb3(x))
 *   cb5 (64, 2, 2) -> cb6 (128, 1, 1) -> x + cb8(cb7(x)) -> linear1 128 -> relu -> linear2
 *
 * cb is a convolution with bias, batch norm and ReLU, in this order; no ReLU follows a sum. Weights
 * start as there: kaiming_uniform, the biases of the linear layers too.
 */
#include <inttypes.h>

#include "models/models.h"

#define RESNET9_LINEAR_INIT "init: kaiming_uniform, bias_init: kaiming_uniform"

/* cb<index>: a convolution that keeps the image but for its stride. */
static co_status resnet9_block(co_builder *b, int index, int out, int kernel, int stride)
{
    b->prefix = co_arena_printf(co_config_arena(b->config), "cb%d.", index);
    if (!b->prefix)
        return CO_E_NOMEM;
    CO_TRY(co_build_format(b, "conv2d", "conv",
                           "{out: %d, kernel: %d, stride: %d, padding: %d, init: kaiming_uniform}",
                           out, kernel, stride, (kernel - 1) / 2));
    CO_TRY(co_build(b, "batchnorm", "bn", NULL));
    return co_build(b, "relu", NULL, NULL);
}

/* x + cb<index + 1>(cb<index>(x)) */
static co_status resnet9_residual(co_builder *b, int index, int out)
{
    const int x = b->x;

    co_graph_begin_block(b->graph);
    CO_TRY(resnet9_block(b, index, out, 3, 1));
    CO_TRY(resnet9_block(b, index + 1, out, 3, 1));
    CO_TRY(co_build_add(b, x));
    co_graph_end_block(b->graph);
    return CO_OK;
}

static co_status resnet9_build(const void *self, co_builder *b)
{
    (void)self;
    CO_TRY(resnet9_block(b, 1, 16, 7, 4));
    CO_TRY(resnet9_block(b, 2, 32, 3, 2));
    CO_TRY(resnet9_residual(b, 3, 32));
    CO_TRY(resnet9_block(b, 5, 64, 3, 2));
    CO_TRY(resnet9_block(b, 6, 128, 3, 2));
    CO_TRY(resnet9_residual(b, 7, 128));
    b->prefix = NULL;
    CO_TRY(co_build(b, "flatten", NULL, NULL));
    CO_TRY(co_build(b, "linear", "linear1", "{out: 128, " RESNET9_LINEAR_INIT "}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    return co_build_format(b, "linear", "linear2", "{out: %" PRId64 ", " RESNET9_LINEAR_INIT "}",
                           b->classes);
}

const co_model_ops co_model_resnet9 = {
    .name = "resnet9",
    .summary = "small residual network of a course on deep learning systems, for CIFAR",
    .sample = {3, {3, 32, 32}},
    .build = resnet9_build,
};
