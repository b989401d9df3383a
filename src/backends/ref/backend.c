/*
 * backend.c - the kernels of the reference backend: one for every op.
 */
#include "backends/ref/ref.h"

static const co_kernel *const backend_kernels[] = {
    &co_ref_conv2d,
    &co_ref_linear,
    &co_ref_maxpool,
    &co_ref_avgpool,
    &co_ref_adaptive_avgpool,
    &co_ref_batchnorm,
    &co_ref_relu,
    &co_ref_dropout,
    &co_ref_dropout2d,
    &co_ref_add,
    &co_ref_flatten,
    &co_ref_scale,
    &co_ref_log_softmax,
    &co_ref_nll_loss,
    &co_ref_cross_entropy,
    &co_ref_mse_loss,
    &co_ref_bce_with_logits_loss,
    NULL,
};

const co_backend co_backend_ref = {
    .name = "ref",
    .summary = "plain loops in the order of the equations: the oracle of the tests",
    .kernels = backend_kernels,
};
