/*
 * gelu.c - the Gaussian error linear unit: value x P(x), slope P(x) + x p(x).
 *
 *   P(x) = (1 + erf(x / sqrt 2)) / 2      p(x) = exp(-x^2 / 2) / sqrt(2 pi)
 *
 * or with tanh: P(x) = (1 + tanh(u)) / 2 and its slope p(x) = (1 - tanh(u)^2) u' / 2, where
 *
 *   u = sqrt(2 / pi) (x + 0.044715 x^3)   u' = sqrt(2 / pi) (1 + 3 * 0.044715 x^2)
 */
#include <math.h>

#include "backends/ref/pointwise.h"

#define GELU_ROOT_HALF    0.70710678118654752440 /* sqrt(1 / 2) */
#define GELU_DENSITY_AT_0 0.39894228040143267794 /* 1 / sqrt(2 pi) */
#define GELU_TANH_SLOPE   0.79788456080286535588 /* sqrt(2 / pi) */
#define GELU_TANH_CUBE    0.044715

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

static double gelu_tanh(double x)
{
    return tanh(GELU_TANH_SLOPE * (x + GELU_TANH_CUBE * x * x * x));
}

static double gelu_tanh_value(double x)
{
    return 0.5 * x * (1 + gelu_tanh(x));
}

static double gelu_tanh_slope(double x)
{
    const double t = gelu_tanh(x), slope = GELU_TANH_SLOPE * (1 + 3 * GELU_TANH_CUBE * x * x);

    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
}

static bool gelu_is_exact(const co_call *call)
{
    return ((const co_gelu_attr *)call->attr)->approximate == CO_GELU_EXACT;
}

static co_status gelu_forward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_pointwise_forward(call, gelu_is_exact(call) ? gelu_value : gelu_tanh_value);
}

static co_status gelu_backward(co_call *call, const co_run *run)
{
    (void)run;
    return ref_pointwise_backward(call, call->in[0],
                                  gelu_is_exact(call) ? gelu_slope : gelu_tanh_slope);
}

const co_kernel co_ref_gelu = {
    .op = "gelu",
    .forward = gelu_forward,
    .backward = gelu_backward,
};
