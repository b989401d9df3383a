/*
 * tanh.c - the hyperbolic tangent.
 */
#include "ops/rules.h"

/* The function (as ten); back: a square, a difference, a product. */
static void tanh_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                      const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){10 * n, 3 * n, 0};
}

const co_op co_op_tanh = {
    .name = "tanh",
    .summary = "hyperbolic tangent, from -1 to 1",
    .along = CO_ALONG_NONE,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_OUT, /* its slope is a function of its value */
    .grad_in = 1,
    .shape = rules_shape_same,
    .receptive = rules_same_extent,
    .work = tanh_work,
    .onnx = "Tanh",
};
