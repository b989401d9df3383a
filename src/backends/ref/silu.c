/*
 * silu.c - the sigmoid linear unit: value x s(x), slope s(x) (1 + x (1 - s(x))).
 *
 *   s(x) = 1 / (1 + exp(-x))
 */
#include <math.h>

#include "backends/ref/pointwise.h"

static double silu_value(double x)
{
    return x / (1 + exp(-x));
}

static double silu_slope(double x)
{
    const double s = 1 / (1 + exp(-x));

    return s * (1 + x * (1 - s));
}

static co_status silu_forward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_pointwise_forward(call, silu_value);
}

static co_status silu_backward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_pointwise_backward(call, call->in[0], silu_slope);
}

const co_kernel co_ref_silu = {
    .op = "silu",
    .forward = silu_forward,
    .backward = silu_backward,
};
