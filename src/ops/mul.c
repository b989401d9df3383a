/*
 * mul.c - product of two tensors of one shape, element by element: what opens and closes a gate.
 */
#include "ops/rules.h"

static co_status mul_shape(co_shape *out, const co_shape *in, const void *attr)
{
    char a[RULES_SHAPE_TEXT], b[RULES_SHAPE_TEXT];

    (void)attr;
    if (!co_shape_equal(&in[0], &in[1]))
        return co_fail(CO_E_USAGE, "cannot multiply %s and %s: both sides need one shape",
                       rules_format(a, &in[0]), rules_format(b, &in[1]));
    *out = in[0];
    return CO_OK;
}

static void mul_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                     const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){n, 2 * n, 0};
}

const co_op co_op_mul = {
    .name = "mul",
    .summary = "product of two tensors, element by element",
    .along = CO_ALONG_NONE,
    .n_in = 2,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1 | 2,
    .shape = mul_shape,
    .receptive = rules_same_extent,
    .work = mul_work,
    .onnx = "Mul",
};
