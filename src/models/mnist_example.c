/*
 * mnist_example.c - the network of PyTorch's MNIST example: 1,199,882 parameters on (1, 28, 28).
 *
 *   conv1 (32, 26, 26) -> relu -> conv2 (64, 24, 24) -> relu -> pool (64, 12, 12) -> dropout
 *   fc1 128 -> relu -> dropout -> fc2 -> log_softmax
 */
#include <inttypes.h>

#include "models/models.h"

static co_status mnist_example_build(const void *self, co_builder *b)
{
    (void)self;
    CO_TRY(co_build(b, "conv2d", "conv1", "{out: 32, kernel: 3}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "conv2d", "conv2", "{out: 64, kernel: 3}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(co_build(b, "dropout", "dropout1", "{p: 0.25}"));
    CO_TRY(co_build(b, "flatten", NULL, NULL));
    CO_TRY(co_build(b, "linear", "fc1", "{out: 128}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "dropout", "dropout2", "{p: 0.5}"));
    CO_TRY(co_build_format(b, "linear", "fc2", "{out: %" PRId64 "}", b->classes));
    return co_build(b, "log_softmax", NULL, NULL);
}

const co_model_ops co_model_mnist_example = {
    .name = "mnist-example",
    .summary = "the network of PyTorch's MNIST example",
    .sample = {3, {1, 28, 28}},
    .build = mnist_example_build,
};
