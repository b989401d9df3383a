/*
 * l1_loss.c - mean absolute error: term |x - t|, slope sign(x - t), sign(0) = 0.
 */
#include <math.h>

#include "backends/ref/values_loss.h"

static double l1_loss_term(double x, double t)
{
    return fabs(x - t);
}

/* A NaN stays one. */
static double l1_loss_slope(double x, double t)
{
    return x > t ? 1 : x < t ? -1 : x - t;
}

static co_status l1_loss_forward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_values_loss_forward(call, l1_loss_term);
}

static co_status l1_loss_backward(co_call *call, const co_run *run)
{
    return ref_values_loss_backward(call, run, l1_loss_slope);
}

const co_kernel co_ref_l1_loss = {
    .op = "l1_loss",
    .forward = l1_loss_forward,
    .backward = l1_loss_backward,
};
