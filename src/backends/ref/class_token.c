/*
 * class_token.c - a trained row in front of each sequence.
 *
 *   y[n][0]  = w        y[n][t + 1] = x[n][t]
 *
 *   dw       = sum_n dy[n][0]
 *   dx[n][t] = dy[n][t + 1]
 */
#include <string.h>

#include "backends/ref/ref.h"

static co_status class_token_forward(co_call *call, const co_run *run)
{
    const int64_t *in = call->in[0]->shape.dim, sample = in[1] * in[2];
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t n = 0; n < in[0]; n++, x += sample, y += sample + in[2]) {
        memcpy(y, call->param[0].data, (size_t)in[2] * sizeof(*y));
        memcpy(y + in[2], x, (size_t)sample * sizeof(*y));
    }
    return CO_OK;
}

static co_status class_token_backward(co_call *call, const co_run *run)
{
    const int64_t *in = call->in[0]->shape.dim, sample = in[1] * in[2], each = sample + in[2];
    const float *dy = call->grad_out[0]->data;
    float *dx = ref_data(call->grad_in[0]);

    for (int64_t f = 0; f < in[2]; f++) {
        double sum = 0;

        for (int64_t n = 0; n < in[0]; n++)
            sum += (double)dy[n * each + f];
        ref_put((float *)call->grad_param[0].data + f, sum, run);
    }
    for (int64_t n = 0; dx && n < in[0]; n++)
        memcpy(dx + n * sample, dy + n * each + in[2], (size_t)sample * sizeof(*dx));
    return CO_OK;
}

const co_kernel co_ref_class_token = {
    .op = "class_token",
    .forward = class_token_forward,
    .backward = class_token_backward,
};
