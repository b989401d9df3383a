/*
 * silu.c - the sigmoid linear unit, also called swish (Elfwing et al., arXiv:1702.03118).
 */
#include "ops/rules.h"

/* Exponential (as ten), sum, quotient; back: the same, two products, a sum. */
static void silu_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                      const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){12 * n, 16 * n, 0};
}

static void silu_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    const char *x = to->in[0], *s = to->node(to, "Sigmoid", "/sigmoid", (const char *[]){x, NULL});

    (void)in, (void)out, (void)attr;
    to->node(to, "Mul", "", (const char *[]){x, s, NULL});
}

const co_op co_op_silu = {
    .name = "silu",
    .summary = "x times its logistic function",
    .along = CO_ALONG_NONE,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .shape = rules_shape_same,
    .receptive = rules_same_extent,
    .work = silu_work,
    .write_onnx = silu_onnx,
};
