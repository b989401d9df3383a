/*
 * cross_entropy.c - negative log-likelihood straight from logits, with label smoothing.
 *
 *   q[n][c]  = (1 - e) [c = t[n]] + e / C      x logits (N, C), t labels (N), e smoothing
 *   l[n]     = sum_c q[n][c] (norm[n] - x[n][c]),   norm[n] = log sum_k exp(x[n][k])
 *
 *   dx[n][c] = g (exp(x[n][c] - norm[n]) - q[n][c])
 *
 * g is d objective / d l[n]; the q of a row add up to 1.
 */
#include <math.h>

#include "backends/ref/ref.h"

static double cross_entropy_target(const co_call *call, int64_t n, int64_t c)
{
    const co_cross_entropy_attr *a = call->attr;
    const int64_t classes = call->in[0]->shape.dim[1];
    const int32_t *label = call->in[1]->data;

    return (c == label[n] ? 1 - a->label_smoothing : 0) + a->label_smoothing / (double)classes;
}

static co_status cross_entropy_forward(co_call *call, const co_run *run)
{
    const int64_t rows = call->in[0]->shape.dim[0], classes = call->in[0]->shape.dim[1];
    float *loss = call->out[0]->data;

    (void)run;
    for (int64_t n = 0; n < rows; n++) {
        const float *x = (const float *)call->in[0]->data + n * classes;
        double norm = ref_log_sum_exp(x, classes), sum = 0;

        for (int64_t c = 0; c < classes; c++)
            sum += cross_entropy_target(call, n, c) * (norm - x[c]);
        loss[n] = (float)sum;
    }
    return CO_OK;
}

static co_status cross_entropy_backward(co_call *call, const co_run *run)
{
    const int64_t rows = call->in[0]->shape.dim[0], classes = call->in[0]->shape.dim[1];
    const float g = co_run_grad_scale(run);

    for (int64_t n = 0; call->grad_in[0] && n < rows; n++) {
        const float *x = (const float *)call->in[0]->data + n * classes;
        float *dx = (float *)call->grad_in[0]->data + n * classes;
        double norm = ref_log_sum_exp(x, classes);

        for (int64_t c = 0; c < classes; c++)
            dx[c] = (float)(g * (exp(x[c] - norm) - cross_entropy_target(call, n, c)));
    }
    return CO_OK;
}

const co_kernel co_ref_cross_entropy = {
    .op = "cross_entropy",
    .forward = cross_entropy_forward,
    .backward = cross_entropy_backward,
};
