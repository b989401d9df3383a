/*
 * mse_loss.c - the mean squared error of each sample: regression.
 */
#include "ops/rules.h"

/* Difference, square, sum; back: difference, product. */
static void mse_loss_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                          const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){3 * n, 2 * n, 0};
}

const co_op co_op_mse_loss = {
    .name = "mse_loss",
    .summary = "mean squared error, for values: regression",
    .precision = CO_PRECISION_WIDE,
    .n_in = 2,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .is_loss = true,
    .target = CO_TARGET_VALUES,
    .shape = rules_shape_values_loss,
    .work = mse_loss_work,
};
