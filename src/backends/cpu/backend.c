/*
 * backend.c - Cohort's own kernels for processors.
 */
#include <stdio.h>

#include "backends/cpu/sample_lanes/kernels.h"

static void backend_describe(char *out, size_t size)
{
    const lanes_loops *lanes = lanes_choose();

    snprintf(out, size, "%s, %d samples a vector", lanes->name, lanes->lanes);
}

static const co_kernel *const backend_kernels[] = {
    &co_cpu_lanes_conv2d,  &co_cpu_lanes_maxpool,   &co_cpu_lanes_relu,
    &co_cpu_lanes_add,     &co_cpu_lanes_flatten,   &co_cpu_lanes_batchnorm,
    &co_cpu_lanes_dropout, &co_cpu_lanes_dropout2d, NULL,
};

const co_backend co_backend_cpu = {
    .name = "cpu",
    .summary = "own kernels for processors",
    .kernels = backend_kernels,
    .unpack = &co_cpu_lanes_unpack,
    .describe = backend_describe,
};
