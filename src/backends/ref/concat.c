/*
 * concat.c - rows of three tensors, one after the other.
 *
 *   y[n]  = a[n], b[n], c[n]
 *
 *   da[n] = the first part of dy[n], db[n] the second, dc[n] the third
 */
#include <string.h>

#include "backends/ref/ref.h"

static co_status concat_forward(co_call *call, const co_run *run)
{
    float *y = call->out[0]->data;
    const int64_t width = call->out[0]->shape.dim[2];
    const int64_t rows = co_shape_count(&call->out[0]->shape) / width;

    (void)run;
    for (int k = 0; k < 3; k++) {
        const int64_t part = call->in[k]->shape.dim[2];
        const float *x = call->in[k]->data;

        for (int64_t n = 0; n < rows; n++)
            memcpy(y + n * width, x + n * part, (size_t)part * sizeof(*y));
        y += part;
    }
    return CO_OK;
}

static co_status concat_backward(co_call *call, const co_run *run)
{
    const float *dy = call->grad_out[0]->data;
    const int64_t width = call->grad_out[0]->shape.dim[2];
    const int64_t rows = co_shape_count(&call->grad_out[0]->shape) / width;

    (void)run;
    for (int k = 0; k < 3; k++) {
        const int64_t part = call->in[k]->shape.dim[2];
        float *dx = ref_data(call->grad_in[k]);

        for (int64_t n = 0; dx && n < rows; n++)
            memcpy(dx + n * part, dy + n * width, (size_t)part * sizeof(*dx));
        dy += part;
    }
    return CO_OK;
}

const co_kernel co_ref_concat = {
    .op = "concat",
    .forward = concat_forward,
    .backward = concat_backward,
};
