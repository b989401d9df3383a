/*
 * backend.c - the list of native kernels.
 */
#include <stdio.h>

#include "backends/native/native.h"

static void backend_describe(char *out, size_t size)
{
    const lanes_loops *lanes = lanes_choose();

    snprintf(out, size, "%s, %d samples a vector", lanes->name, lanes->lanes);
}

static const co_kernel *const backend_kernels[] = {
    &co_native_conv2d,  &co_native_maxpool,   &co_native_relu,
    &co_native_add,     &co_native_flatten,   &co_native_batchnorm,
    &co_native_dropout, &co_native_dropout2d, NULL,
};

const co_backend co_backend_native = {
    .name = "native",
    .summary = "own kernels for networks of few channels, with samples as vector lanes",
    .kernels = backend_kernels,
    .unpack = &co_native_unpack,
    .describe = backend_describe,
};
