/*
 * l1_loss.c - the mean absolute error of each sample: regression that outliers move little.
 */
#include "ops/rules.h"

/* Difference, absolute value, sum; back: difference, sign, product. */
static void l1_loss_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                         const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){3 * n, 3 * n, 0};
}

const co_op co_op_l1_loss = {
    .name = "l1_loss",
    .summary = "mean absolute error, for values: regression that outliers move little",
    .precision = CO_PRECISION_WIDE,
    .n_in = 2,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .is_loss = true,
    .target = CO_TARGET_VALUES,
    .shape = rules_shape_values_loss,
    .work = l1_loss_work,
};
