/*
 * pointwise.h - ops whose output is, element by element, a function of one input.
 *
 *   y[i]  = value(x[i])
 *
 *   dx[i] = dy[i] slope(s[i])      s: x, or y where the op saves its output
 */
#ifndef CO_BACKENDS_REF_POINTWISE_H
#define CO_BACKENDS_REF_POINTWISE_H

#include "backends/ref/ref.h"

typedef double (*ref_pointwise_fn)(double v);

static inline co_status ref_pointwise_forward(co_call *call, ref_pointwise_fn value)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    for (int64_t i = 0; i < count; i++)
        y[i] = (float)value((double)x[i]);
    return CO_OK;
}

static inline co_status ref_pointwise_backward(co_call *call, const co_tensor *saved,
                                               ref_pointwise_fn slope)
{
    const int64_t count = co_shape_count(&saved->shape);
    const float *s = saved->data, *dy = call->grad_out[0]->data;
    float *dx = ref_data(call->grad_in[0]);

    for (int64_t i = 0; dx && i < count; i++)
        dx[i] = (float)((double)dy[i] * slope((double)s[i]));
    return CO_OK;
}

#endif
