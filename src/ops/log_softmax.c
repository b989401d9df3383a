/*
 * log_softmax.c - scores to log-probabilities, row by row.
 */
#include "ops/rules.h"

static co_status log_softmax_shape(co_shape *out, const co_shape *in, const void *attr)
{
    (void)attr;
    CO_TRY(rules_need_matrix(in));
    *out = *in;
    return CO_OK;
}

const co_op co_op_log_softmax = {
    .name = "log_softmax",
    .summary = "log-probabilities from scores",
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_OUT,
    .grad_in = 1,
    .shape = log_softmax_shape,
};
