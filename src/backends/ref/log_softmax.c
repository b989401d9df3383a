/*
 * log_softmax.c - logits to log-probabilities, row by row.
 *
 *   y[n][c]  = x[n][c] - log sum_k exp(x[n][k])
 *
 *   dx[n][c] = dy[n][c] - exp(y[n][c]) sum_k dy[n][k]
 *
 * the largest logit is taken out of the sum first, so that exp cannot overflow.
 */
#include <math.h>

#include "backends/ref/ref.h"

double ref_log_sum_exp(const float *x, int64_t n)
{
    double max = x[0], sum = 0;

    for (int64_t i = 1; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - max);
    return max + log(sum);
}

static co_status log_softmax_forward(co_call *call, const co_run *run)
{
    const int64_t rows = call->in[0]->shape.dim[0], classes = call->in[0]->shape.dim[1];
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t n = 0; n < rows; n++) {
        double norm = ref_log_sum_exp(x + n * classes, classes);

        for (int64_t i = n * classes; i < (n + 1) * classes; i++)
            y[i] = (float)(x[i] - norm);
    }
    return CO_OK;
}

static co_status log_softmax_backward(co_call *call, const co_run *run)
{
    const int64_t rows = call->out[0]->shape.dim[0], classes = call->out[0]->shape.dim[1];
    const float *y = call->out[0]->data;
    const float *dy = call->grad_out[0]->data;
    float *dx = ref_data(call->grad_in[0]);

    (void)run;
    for (int64_t n = 0; dx && n < rows; n++) {
        double sum = 0;

        for (int64_t i = n * classes; i < (n + 1) * classes; i++)
            sum += dy[i];
        for (int64_t i = n * classes; i < (n + 1) * classes; i++)
            dx[i] = (float)(dy[i] - exp((double)y[i]) * sum);
    }
    return CO_OK;
}

const co_kernel co_ref_log_softmax = {
    .op = "log_softmax",
    .forward = log_softmax_forward,
    .backward = log_softmax_backward,
    .in_place = true,
};
