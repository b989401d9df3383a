/*
 * bce_with_logits_loss.c - binary cross-entropy, straight from logits.
 *
 *   l[n]     = 1/F sum_f -t log s(x) - (1 - t) log(1 - s(x)),   s(x) = 1 / (1 + exp(-x))
 *            = 1/F sum_f max(x, 0) - t x + log(1 + exp(-|x|))   which never overflows
 *
 *   dx[n][f] = g/F (s(x) - t)
 *
 * x = x[n][f] logits and t = t[n][f] targets from 0 to 1, both (N, F); g is d objective / d l[n].
 * F counts all elements of a sample, whatever their dimensions.
 */
#include <math.h>

#include "backends/ref/ref.h"

static co_status bce_with_logits_loss_forward(co_call *call, const co_run *run)
{
    const int64_t rows = call->in[0]->shape.dim[0];
    const int64_t width = co_shape_count(&call->in[0]->shape) / rows;
    const float *x = call->in[0]->data, *t = call->in[1]->data;
    float *loss = call->out[0]->data;

    (void)run;
    for (int64_t n = 0; n < rows; n++) {
        double sum = 0;

        for (int64_t i = n * width; i < (n + 1) * width; i++) {
            const double v = (double)x[i];

            sum += (v < 0 ? 0 : v) - (double)t[i] * v + log1p(exp(-fabs(v)));
        }
        loss[n] = (float)(sum / (double)width);
    }
    return CO_OK;
}

static co_status bce_with_logits_loss_backward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const double scale =
        (double)co_run_grad_scale(run) / (double)(count / call->in[0]->shape.dim[0]);
    const float *x = call->in[0]->data, *t = call->in[1]->data;
    float *dx = ref_data(call->grad_in[0]);

    for (int64_t i = 0; dx && i < count; i++)
        dx[i] = (float)(scale * (1 / (1 + exp(-(double)x[i])) - (double)t[i]));
    return CO_OK;
}

const co_kernel co_ref_bce_with_logits_loss = {
    .op = "bce_with_logits_loss",
    .forward = bce_with_logits_loss_forward,
    .backward = bce_with_logits_loss_backward,
};
