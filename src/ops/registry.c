/*
 * registry.c - every op by name.
 */
#include "ops/ops.h"

const co_op *const co_ops[] = {
    &co_op_conv2d,
    &co_op_linear,
    &co_op_maxpool,
    &co_op_avgpool,
    &co_op_adaptive_avgpool,
    &co_op_batchnorm,
    &co_op_relu,
    &co_op_dropout,
    &co_op_dropout2d,
    &co_op_add,
    &co_op_flatten,
    &co_op_scale,
    &co_op_log_softmax,
    &co_op_nll_loss,
    &co_op_cross_entropy,
    &co_op_mse_loss,
    &co_op_bce_with_logits_loss,
    NULL,
};

const co_plugins co_op_plugins = {"layer", "layers", co_ops, 0};

CO_PLUGIN_CHECK(co_op, attr_size);
