/*
 * bce_with_logits_loss.c - binary cross-entropy of each logit, the mean over a sample: several
 * labels, each there or not.
 */
#include "ops/rules.h"

/* Maximum, product, exponential, logarithm, two sums; back: exponential, quotient, difference,
   product. */
static void bce_with_logits_loss_work(co_op_work *out, const co_shape *in,
                                      const co_shape *out_shape, const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){6 * n, 4 * n, 0};
}

const co_op co_op_bce_with_logits_loss = {
    .name = "bce_with_logits_loss",
    .summary = "sigmoid and binary cross-entropy in one, for labels that are there or not",
    .precision = CO_PRECISION_WIDE,
    .n_in = 2,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .is_loss = true,
    .target = CO_TARGET_BINARY,
    .shape = rules_shape_values_loss,
    .work = bce_with_logits_loss_work,
};
