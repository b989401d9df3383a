/*
 * gelu.c - the Gaussian error linear unit: value x P(x), slope P(x) + x p(x).
 *
 *   P(x) = (1 + erf(x / sqrt 2)) / 2      p(x) = exp(-x^2 / 2) / sqrt(2 pi)
 */
#include <math.h>

#include "backends/ref/pointwise.h"

#define GELU_ROOT_HALF    0.70710678118654752440 /* sqrt(1 / 2) */
#define GELU_DENSITY_AT_0 0.39894228040143267794 /* 1 / sqrt(2 pi) */

/* P: erfc keeps the digits that 1 + erf loses where x is far below 0. */
static double gelu_below(double x)
{
    return 0.5 * erfc(-x * GELU_ROOT_HALF);
}

static double gelu_value(double x)
{
    return x * gelu_below(x);
}

static double gelu_slope(double x)
{
    return gelu_below(x) + x * (GELU_DENSITY_AT_0 * exp(-0.5 * x * x));
}

static co_status gelu_forward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_pointwise_forward(call, gelu_value);
}

static co_status gelu_backward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_pointwise_backward(call, call->in[0], gelu_slope);
}

const co_kernel co_ref_gelu = {
    .op = "gelu",
    .forward = gelu_forward,
    .backward = gelu_backward,
};
