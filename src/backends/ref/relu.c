/*
 * relu.c - negative values become zero.
 *
 *   y[i]  = max(x[i], 0)
 *
 *   dx[i] = dy[i] if y[i] > 0, else 0
 *
 * y > 0 exactly where x > 0, so backward needs the output alone and x may be overwritten.
 */
#include "backends/ref/ref.h"

static co_status relu_forward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    (void)run;
    /* Written so that a NaN stays one. */
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] <= 0 ? 0 : x[i];
    return CO_OK;
}

static co_status relu_backward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->out[0]->shape);
    const float *y = call->out[0]->data;
    const float *dy = call->grad_out[0]->data;
    float *dx = ref_data(call->grad_in[0]);

    (void)run;
    for (int64_t i = 0; dx && i < count; i++)
        dx[i] = y[i] <= 0 ? 0 : dy[i];
    return CO_OK;
}

const co_kernel co_ref_relu = {
    .op = "relu",
    .forward = relu_forward,
    .backward = relu_backward,
    .in_place = true,
};
