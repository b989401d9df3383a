/*
 * tanh.c - the hyperbolic tangent: value tanh(x), slope 1 - y^2.
 */
#include <math.h>

#include "backends/ref/pointwise.h"

static double tanh_slope(double y)
{
    return 1 - y * y;
}

static co_status tanh_forward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_pointwise_forward(call, tanh);
}

static co_status tanh_backward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_pointwise_backward(call, call->out[0], tanh_slope);
}

const co_kernel co_ref_tanh = {
    .op = "tanh",
    .forward = tanh_forward,
    .backward = tanh_backward,
    .in_place = true,
};
