/*
 * gelu.c - the Gaussian error linear unit.
 *
 *   y[i]  = x[i] P(x[i])                  P(x) = (1 + erf(x / sqrt 2)) / 2
 *
 *   dx[i] = dy[i] (P(x[i]) + x[i] p(x[i]))      p(x) = exp(-x^2 / 2) / sqrt(2 pi)
 */
#include "backends/ref/ref.h"

#include <math.h>

#define GELU_ROOT_HALF    0.70710678118654752440 /* sqrt(1 / 2) */
#define GELU_DENSITY_AT_0 0.39894228040143267794 /* 1 / sqrt(2 pi) */

/* P: erfc keeps the digits that 1 + erf loses where x is far below 0. */
static double gelu_below(double x)
{
    return 0.5 * erfc(-x * GELU_ROOT_HALF);
}

static co_status gelu_forward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t i = 0; i < count; i++)
        y[i] = (float)((double)x[i] * gelu_below((double)x[i]));
    return CO_OK;
}

static co_status gelu_backward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const float *x = call->in[0]->data, *dy = call->grad_out[0]->data;
    float *dx = ref_data(call->grad_in[0]);

    (void)run;
    for (int64_t i = 0; dx && i < count; i++) {
        const double v = (double)x[i], density = GELU_DENSITY_AT_0 * exp(-0.5 * v * v);

        dx[i] = (float)((double)dy[i] * (gelu_below(v) + v * density));
    }
    return CO_OK;
}

const co_kernel co_ref_gelu = {
    .op = "gelu",
    .forward = gelu_forward,
    .backward = gelu_backward,
};
