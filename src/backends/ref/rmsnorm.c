/*
 * rmsnorm.c - divide each row by the root of the mean of its squares, then scale its elements.
 *
 *   r[n]     = 1 / sqrt(mean_f x[n][f]^2 + eps)        h[n][f] = x[n][f] r[n]
 *   y[n][f]  = h[n][f] w[f]
 *
 *   g[n][f]  = dy[n][f] w[f]
 *   dx[n][f] = r[n] (g[n][f] - h[n][f] mean_k (g[n][k] h[n][k]))
 *   dw[f]    = sum_n dy[n][f] h[n][f]
 */
#include <math.h>
#include <string.h>

#include "backends/ref/ref.h"

static double rmsnorm_scale(const float *x, int64_t n, double eps)
{
    double squares = 0;

    for (int64_t f = 0; f < n; f++)
        squares += (double)x[f] * (double)x[f];
    return 1 / sqrt(squares / (double)n + eps);
}

static co_status rmsnorm_forward(co_call *call, const co_run *run)
{
    const co_rmsnorm_attr *a = call->attr;
    const int64_t size = call->param[0].shape.dim[0];
    const int64_t rows = co_shape_count(&call->in[0]->shape) / size;
    const float *x = call->in[0]->data, *w = call->param[0].data;
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t n = 0; n < rows; n++, x += size, y += size) {
        const double scale = rmsnorm_scale(x, size, a->eps);

        for (int64_t f = 0; f < size; f++)
            y[f] = (float)((double)x[f] * scale * (double)w[f]);
    }
    return CO_OK;
}

static void rmsnorm_backward_row(float *dx, const float *x, const float *dy, const float *w,
                                 int64_t size, double scale)
{
    double product = 0;

    for (int64_t f = 0; f < size; f++)
        product += (double)dy[f] * (double)w[f] * (double)x[f] * scale;
    for (int64_t f = 0; f < size; f++)
        dx[f] = (float)(scale * ((double)dy[f] * (double)w[f] -
                                 (double)x[f] * scale * product / (double)size));
}

/* dw (F), in double. */
static co_status rmsnorm_plan_backward(co_call *call)
{
    call->scratch_bytes = (size_t)call->param[0].shape.dim[0] * sizeof(double);
    return CO_OK;
}

static co_status rmsnorm_backward(co_call *call, const co_run *run)
{
    const co_rmsnorm_attr *a = call->attr;
    const int64_t size = call->param[0].shape.dim[0];
    const int64_t rows = co_shape_count(&call->in[0]->shape) / size;
    const float *x = call->in[0]->data, *dy = call->grad_out[0]->data;
    float *dx = ref_data(call->grad_in[0]);
    double *dw = call->scratch;

    memset(dw, 0, (size_t)size * sizeof(*dw));
    for (int64_t n = 0; n < rows; n++, x += size, dy += size) {
        const double scale = rmsnorm_scale(x, size, a->eps);

        for (int64_t f = 0; f < size; f++)
            dw[f] += (double)dy[f] * (double)x[f] * scale;
        if (dx)
            rmsnorm_backward_row(dx + n * size, x, dy, call->param[0].data, size, scale);
    }
    for (int64_t f = 0; f < size; f++)
        ref_put((float *)call->grad_param[0].data + f, dw[f], run);
    return CO_OK;
}

const co_kernel co_ref_rmsnorm = {
    .op = "rmsnorm",
    .plan_backward = rmsnorm_plan_backward,
    .forward = rmsnorm_forward,
    .backward = rmsnorm_backward,
};
