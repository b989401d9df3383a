/*
 * gelu.c - the Gaussian error linear unit (Hendrycks & Gimpel, arXiv:1606.08415), exact.
 */
#include "ops/rules.h"

/* Product, error function (as ten), sum, two products; back: the same, exponential, sum. */
static void gelu_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                      const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){14 * n, 28 * n, 0};
}

const co_op co_op_gelu = {
    .name = "gelu",
    .summary = "x times the probability that a standard normal number is below x",
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .shape = rules_shape_same,
    .work = gelu_work,
};
