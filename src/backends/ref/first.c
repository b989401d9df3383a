/*
 * first.c - the first position of each sequence.
 *
 *   y[n]     = x[n][0]
 *
 *   dx[n][0] = dy[n], 0 at later positions
 */
#include <string.h>

#include "backends/ref/ref.h"

static co_status first_forward(co_call *call, const co_run *run)
{
    const int64_t *in = call->in[0]->shape.dim;
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t n = 0; n < in[0]; n++)
        memcpy(y + n * in[2], x + n * in[1] * in[2], (size_t)in[2] * sizeof(*y));
    return CO_OK;
}

static co_status first_backward(co_call *call, const co_run *run)
{
    const int64_t *in = call->in[0]->shape.dim;
    const float *dy = call->grad_out[0]->data;
    float *dx = ref_data(call->grad_in[0]);

    (void)run;
    for (int64_t n = 0; dx && n < in[0]; n++, dx += in[1] * in[2]) {
        memcpy(dx, dy + n * in[2], (size_t)in[2] * sizeof(*dx));
        memset(dx + in[2], 0, (size_t)((in[1] - 1) * in[2]) * sizeof(*dx));
    }
    return CO_OK;
}

const co_kernel co_ref_first = {
    .op = "first",
    .forward = first_forward,
    .backward = first_backward,
};
