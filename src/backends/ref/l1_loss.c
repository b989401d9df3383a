/*
 * l1_loss.c - mean absolute error.
 *
 *   l[n]     = 1/F sum_f |x[n][f] - t[n][f]|      x values (N, F), t targets (N, F)
 *
 *   dx[n][f] = g/F sign(x[n][f] - t[n][f])        sign(0) = 0
 *
 * g is d objective / d l[n]. F counts all elements of a sample, whatever their dimensions.
 */
#include "backends/ref/ref.h"

#include <math.h>

static co_status l1_loss_forward(co_call *call, const co_run *run)
{
    const int64_t rows = call->in[0]->shape.dim[0];
    const int64_t width = co_shape_count(&call->in[0]->shape) / rows;
    const float *x = call->in[0]->data, *t = call->in[1]->data;
    float *loss = call->out[0]->data;

    (void)run;
    for (int64_t n = 0; n < rows; n++) {
        double sum = 0;

        for (int64_t i = n * width; i < (n + 1) * width; i++)
            sum += fabs((double)x[i] - (double)t[i]);
        loss[n] = (float)(sum / (double)width);
    }
    return CO_OK;
}

static co_status l1_loss_backward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const double scale =
        (double)co_run_grad_scale(run) / (double)(count / call->in[0]->shape.dim[0]);
    const float *x = call->in[0]->data, *t = call->in[1]->data;
    float *dx = ref_data(call->grad_in[0]);

    for (int64_t i = 0; dx && i < count; i++) {
        const double error = (double)x[i] - (double)t[i];

        /* A NaN stays one. */
        dx[i] = (float)(error > 0 ? scale : error < 0 ? -scale : error * scale);
    }
    return CO_OK;
}

const co_kernel co_ref_l1_loss = {
    .op = "l1_loss",
    .forward = l1_loss_forward,
    .backward = l1_loss_backward,
};
