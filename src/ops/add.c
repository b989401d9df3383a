/*
 * add.c - sum of two tensors of one shape: where a residual path joins.
 */
#include "ops/rules.h"

static co_status add_shape(co_shape *out, const co_shape *in, const void *attr)
{
    char a[RULES_SHAPE_TEXT], b[RULES_SHAPE_TEXT];

    (void)attr;
    if (!co_shape_equal(&in[0], &in[1]))
        return co_fail(CO_E_USAGE, "cannot add %s and %s: both sides need one shape",
                       rules_format(a, &in[0]), rules_format(b, &in[1]));
    *out = in[0];
    return CO_OK;
}

const co_op co_op_add = {
    .name = "add",
    .summary = "sum of two tensors",
    .along = CO_ALONG_NONE,
    .n_in = 2,
    .n_out = 1,
    .grad_in = 1 | 2,
    .pointwise = true,
    .is_sum = true,
    .shape = add_shape,
    .receptive = rules_same_extent,
    .onnx = "Add",
};
