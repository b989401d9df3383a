/*
 * relu.c - negative values become zero.
 */
#include "ops/rules.h"

const co_op co_op_relu = {
    .name = "relu",
    .summary = "max(x, 0)",
    .along = CO_ALONG_NONE,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_OUT, /* positive where the input was: the input may be overwritten */
    .grad_in = 1,
    .pointwise = true,
    .shape = rules_shape_same,
    .receptive = rules_same_extent,
    .onnx = "Relu",
};
