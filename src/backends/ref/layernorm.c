/*
 * layernorm.c - normalise each row, then scale and shift its elements.
 *
 *   m[n]     = mean_f x[n][f]        v[n] = mean_f (x[n][f] - m[n])^2
 *   h[n][f]  = (x[n][f] - m[n]) / sqrt(v[n] + eps)
 *   y[n][f]  = h[n][f] w[f] + b[f]
 *
 *   g[n][f]  = dy[n][f] w[f]
 *   dx[n][f] = (g[n][f] - mean_k g[n][k] - h[n][f] mean_k (g[n][k] h[n][k])) / sqrt(v[n] + eps)
 *   dw[f]    = sum_n dy[n][f] h[n][f]
 *   db[f]    = sum_n dy[n][f]
 */
#include <math.h>
#include <string.h>

#include "backends/ref/ref.h"

/* Mean and reciprocal standard deviation of a row. */
typedef struct layernorm_row {
    double mean, scale;
} layernorm_row;

static layernorm_row layernorm_measure(const float *x, int64_t n, double eps)
{
    double sum = 0, squares = 0, mean;

    for (int64_t f = 0; f < n; f++)
        sum += (double)x[f];
    mean = sum / (double)n;
    for (int64_t f = 0; f < n; f++)
        squares += ((double)x[f] - mean) * ((double)x[f] - mean);
    return (layernorm_row){mean, 1 / sqrt(squares / (double)n + eps)};
}

static co_status layernorm_forward(co_call *call, const co_run *run)
{
    const co_layernorm_attr *a = call->attr;
    const int64_t size = call->param[0].shape.dim[0];
    const int64_t rows = co_shape_count(&call->in[0]->shape) / size;
    const float *w = call->param[0].data, *b = a->bias ? call->param[1].data : NULL;

    (void)run;
    for (int64_t n = 0; n < rows; n++) {
        const float *x = (const float *)call->in[0]->data + n * size;
        float *y = (float *)call->out[0]->data + n * size;
        const layernorm_row row = layernorm_measure(x, size, a->eps);

        for (int64_t f = 0; f < size; f++)
            y[f] = (float)(((double)x[f] - row.mean) * row.scale * (double)w[f] +
                           (b ? (double)b[f] : 0));
    }
    return CO_OK;
}

static void layernorm_backward_row(float *dx, const float *x, const float *dy, const float *w,
                                   int64_t size, double eps)
{
    const layernorm_row row = layernorm_measure(x, size, eps);
    double sum = 0, product = 0;

    for (int64_t f = 0; f < size; f++) {
        const double g = (double)dy[f] * (double)w[f];

        sum += g;
        product += g * ((double)x[f] - row.mean) * row.scale;
    }
    for (int64_t f = 0; f < size; f++) {
        const double h = ((double)x[f] - row.mean) * row.scale;

        dx[f] = (float)(row.scale * ((double)dy[f] * (double)w[f] - sum / (double)size -
                                     h * product / (double)size));
    }
}

/* dw and db, each (F), in double. */
static co_status layernorm_plan_backward(co_call *call)
{
    call->scratch_bytes = 2 * (size_t)call->param[0].shape.dim[0] * sizeof(double);
    return CO_OK;
}

static co_status layernorm_backward(co_call *call, const co_run *run)
{
    const co_layernorm_attr *a = call->attr;
    const int64_t size = call->param[0].shape.dim[0];
    const int64_t rows = co_shape_count(&call->in[0]->shape) / size;
    const float *x = call->in[0]->data, *dy = call->grad_out[0]->data;
    float *dx = ref_data(call->grad_in[0]);
    double *dw = call->scratch, *db = dw + size;

    memset(dw, 0, 2 * (size_t)size * sizeof(*dw));
    for (int64_t n = 0; n < rows; n++, x += size, dy += size) {
        const layernorm_row row = layernorm_measure(x, size, a->eps);

        for (int64_t f = 0; f < size; f++) {
            dw[f] += (double)dy[f] * ((double)x[f] - row.mean) * row.scale;
            db[f] += (double)dy[f];
        }
        if (dx)
            layernorm_backward_row(dx + n * size, x, dy, call->param[0].data, size, a->eps);
    }
    for (int64_t f = 0; f < size; f++) {
        ref_put((float *)call->grad_param[0].data + f, dw[f], run);
        if (a->bias)
            ref_put((float *)call->grad_param[1].data + f, db[f], run);
    }
    return CO_OK;
}

const co_kernel co_ref_layernorm = {
    .op = "layernorm",
    .plan_backward = layernorm_plan_backward,
    .forward = layernorm_forward,
    .backward = layernorm_backward,
};
