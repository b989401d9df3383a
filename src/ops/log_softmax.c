/*
 * log_softmax.c - logits to log-probabilities, row by row.
 */
#include "ops/rules.h"

static co_status log_softmax_shape(co_shape *out, const co_shape *in, const void *attr)
{
    (void)attr;
    CO_TRY(rules_need_matrix(in));
    *out = *in;
    return CO_OK;
}

/* Maximum, difference, exponential, sum; back: product, sum, difference. */
static void log_softmax_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                             const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){4 * n, 3 * n, 0};
}

static void log_softmax_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    (void)in, (void)out, (void)attr;
    to->node(to, "LogSoftmax", "", to->in);
    to->set_int(to, "axis", 1);
}

const co_op co_op_log_softmax = {
    .name = "log_softmax",
    .summary = "log-probabilities from logits",
    .precision = CO_PRECISION_WIDE,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_OUT,
    .grad_in = 1,
    .shape = log_softmax_shape,
    .work = log_softmax_work,
    .write_onnx = log_softmax_onnx,
};
