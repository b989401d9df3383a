/*
 * mse_loss.c - mean squared error: term (x - t)^2, slope 2 (x - t).
 */
#include "backends/ref/values_loss.h"

static double mse_loss_term(double x, double t)
{
    return (x - t) * (x - t);
}

static double mse_loss_slope(double x, double t)
{
    return 2 * (x - t);
}

static co_status mse_loss_forward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_values_loss_forward(call, mse_loss_term);
}

static co_status mse_loss_backward(co_call *call, const co_run *run)
{
    return ref_values_loss_backward(call, run, mse_loss_slope);
}

const co_kernel co_ref_mse_loss = {
    .op = "mse_loss",
    .forward = mse_loss_forward,
    .backward = mse_loss_backward,
};
