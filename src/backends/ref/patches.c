/*
 * patches.c - the pixels of an image (N, C, P) as a sequence (N, P, C).
 *
 *   y[n][p][c]  = x[n][c][p]
 *
 *   dx[n][c][p] = dy[n][p][c]
 */
#include "backends/ref/ref.h"

/* (n, rows, columns) to (n, columns, rows) */
static void patches_transpose(float *to, const float *from, int64_t n, int64_t rows,
                              int64_t columns)
{
    for (int64_t i = 0; i < n; i++, to += rows * columns, from += rows * columns)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                to[c * rows + r] = from[r * columns + c];
}

static co_status patches_forward(co_call *call, const co_run *run)
{
    const int64_t *out = call->out[0]->shape.dim;

    (void)run;
    patches_transpose(call->out[0]->data, call->in[0]->data, out[0], out[2], out[1]);
    return CO_OK;
}

static co_status patches_backward(co_call *call, const co_run *run)
{
    const int64_t *out = call->out[0]->shape.dim;

    (void)run;
    if (call->grad_in[0])
        patches_transpose(call->grad_in[0]->data, call->grad_out[0]->data, out[0], out[1], out[2]);
    return CO_OK;
}

const co_kernel co_ref_patches = {
    .op = "patches",
    .forward = patches_forward,
    .backward = patches_backward,
};
