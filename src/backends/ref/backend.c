/*
 * backend.c - the kernels of the reference backend: one for every op.
 */
#include "backends/ref/ref.h"

static const co_kernel *const backend_kernels[] = {
#define OP(name) &co_ref_##name,
#include "ops/list.h"
#undef OP
    NULL,
};

const co_backend co_backend_ref = {
    .name = "ref",
    .summary = "plain loops in the order of the equations: the oracle of the tests",
    .kernels = backend_kernels,
};
