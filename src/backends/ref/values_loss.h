/*
 * values_loss.h - losses of values and of labels that are there or not: the mean over the elements
 * of a sample, whatever their dimensions, of a term of each.
 *
 *   l[n]     = 1/F sum_f term(x[n][f], t[n][f])      x outputs (N, F), t targets (N, F)
 *
 *   dx[n][f] = g/F slope(x[n][f], t[n][f])           slope = d term / d x
 *
 * g is d objective / d l[n].
 */
#ifndef CO_BACKENDS_REF_VALUES_LOSS_H
#define CO_BACKENDS_REF_VALUES_LOSS_H

#include "backends/ref/ref.h"

typedef double (*ref_values_fn)(double x, double t);

static inline co_status ref_values_loss_forward(co_call *call, ref_values_fn term)
{
    const int64_t rows = call->in[0]->shape.dim[0];
    const int64_t width = co_shape_count(&call->in[0]->shape) / rows;
    const float *x = call->in[0]->data, *t = call->in[1]->data;
    float *loss = call->out[0]->data;

    for (int64_t n = 0; n < rows; n++) {
        double sum = 0;

        for (int64_t i = n * width; i < (n + 1) * width; i++)
            sum += term((double)x[i], (double)t[i]);
        loss[n] = (float)(sum / (double)width);
    }
    return CO_OK;
}

static inline co_status ref_values_loss_backward(co_call *call, const co_run *run,
                                                 ref_values_fn slope)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const int64_t width = count / call->in[0]->shape.dim[0];
    const double scale = (double)co_run_grad_scale(run) / (double)width;
    const float *x = call->in[0]->data, *t = call->in[1]->data;
    float *dx = ref_data(call->grad_in[0]);

    for (int64_t i = 0; dx && i < count; i++)
        dx[i] = (float)(scale * slope((double)x[i], (double)t[i]));
    return CO_OK;
}

#endif
