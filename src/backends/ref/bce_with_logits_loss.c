/*
 * bce_with_logits_loss.c - binary cross-entropy, straight from logits x, with targets t from 0
 * to 1.
 *
 *   term  = -t log s(x) - (1 - t) log(1 - s(x)),   s(x) = 1 / (1 + exp(-x))
 *         = max(x, 0) - t x + log(1 + exp(-|x|))   which never overflows
 *   slope = s(x) - t
 */
#include <math.h>

#include "backends/ref/values_loss.h"

static double bce_with_logits_loss_term(double x, double t)
{
    return (x < 0 ? 0 : x) - t * x + log1p(exp(-fabs(x)));
}

static double bce_with_logits_loss_slope(double x, double t)
{
    return 1 / (1 + exp(-x)) - t;
}

static co_status bce_with_logits_loss_forward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_values_loss_forward(call, bce_with_logits_loss_term);
}

static co_status bce_with_logits_loss_backward(co_call *call, const co_run *run)
{
    return ref_values_loss_backward(call, run, bce_with_logits_loss_slope);
}

const co_kernel co_ref_bce_with_logits_loss = {
    .op = "bce_with_logits_loss",
    .forward = bce_with_logits_loss_forward,
    .backward = bce_with_logits_loss_backward,
};
