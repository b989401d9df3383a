/*
 * positions.c - a row of the weight added to each position.
 *
 *   y[n][t][f]  = x[n][t][f] + w[t][f]
 *
 *   dx[n][t][f] = dy[n][t][f]
 *   dw[t][f]    = sum_n dy[n][t][f], and 0 for positions that no sequence has
 */
#include <string.h>

#include "backends/ref/ref.h"

static co_status positions_forward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->in[0]->shape), n = call->in[0]->shape.dim[0];
    const float *x = call->in[0]->data, *w = call->param[0].data;
    float *y = call->out[0]->data;

    if (run->decoding)
        w += run->decoding->position * call->in[0]->shape.dim[2];
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] + w[run->decoding ? i : i % (count / n)];
    return CO_OK;
}

static co_status positions_backward(co_call *call, const co_run *run)
{
    const int64_t n = call->in[0]->shape.dim[0];
    const int64_t size = co_shape_count(&call->in[0]->shape) / n;
    const int64_t rows = co_shape_count(&call->param[0].shape);
    const float *dy = call->grad_out[0]->data;

    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;

        for (int64_t k = 0; k < n && i < size; k++)
            sum += (double)dy[k * size + i];
        ref_put((float *)call->grad_param[0].data + i, sum, run);
    }
    if (call->grad_in[0])
        memmove(call->grad_in[0]->data, dy, (size_t)(n * size) * sizeof(float));
    return CO_OK;
}

const co_kernel co_ref_positions = {
    .op = "positions",
    .decodes = true,
    .forward = positions_forward,
    .backward = positions_backward,
};
