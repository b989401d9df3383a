/*
 * cross_entropy.c - negative log-likelihood straight from logits, with label smoothing.
 *
 *   q[i][c]  = (1 - e) [c = t[i]] + e / C      x logits, t labels, e smoothing
 *   l[n]     = 1/T sum_i sum_c q[i][c] (norm[i] - x[i][c]),   norm[i] = log sum_k exp(x[i][k])
 *
 *   dx[i][c] = g/T (exp(x[i][c] - norm[i]) - q[i][c])
 *
 * Rows i are samples, T = 1, or the T positions of each sample, of which those with a label of -1
 * are left out. g is d objective / d l[n]; the q of a row add up to 1.
 */
#include <math.h>

#include "backends/ref/ref.h"

/* Sizes of a call: T positions of each of `samples`, `classes` logits. */
typedef struct entropy_size {
    int64_t samples, positions, classes;
} entropy_size;

static entropy_size entropy_sizes(const co_call *call)
{
    const co_shape *x = &call->in[0]->shape;

    return (entropy_size){x->dim[0], x->ndim == 3 ? x->dim[1] : 1, x->dim[x->ndim - 1]};
}

static double entropy_target(const co_call *call, int32_t label, int64_t c, int64_t classes)
{
    const co_cross_entropy_attr *a = call->attr;

    return (c == label ? 1 - a->label_smoothing : 0) + a->label_smoothing / (double)classes;
}

static double entropy_row(const co_call *call, const float *x, int32_t label, int64_t classes)
{
    double sum = 0, norm;

    if (label < 0)
        return 0;
    norm = ref_log_sum_exp(x, classes);
    for (int64_t c = 0; c < classes; c++) {
        const double q = entropy_target(call, label, c, classes);

        if (q > 0) /* else a logit of -inf, which rules a class out, would make it a NaN */
            sum += q * (norm - (double)x[c]);
    }
    return sum;
}

static co_status entropy_forward(co_call *call, const co_run *run)
{
    const entropy_size s = entropy_sizes(call);
    const float *x = call->in[0]->data;
    const int32_t *label = call->in[1]->data;
    float *loss = call->out[0]->data;

    (void)run;
    for (int64_t n = 0; n < s.samples; n++) {
        double sum = 0;

        for (int64_t t = 0; t < s.positions; t++, x += s.classes)
            sum += entropy_row(call, x, *label++, s.classes);
        loss[n] = (float)(sum / (double)s.positions);
    }
    return CO_OK;
}

static co_status entropy_backward(co_call *call, const co_run *run)
{
    const entropy_size s = entropy_sizes(call);
    const double g = (double)co_run_grad_scale(run) / (double)s.positions;
    const int32_t *label = call->in[1]->data;

    for (int64_t i = 0; call->grad_in[0] && i < s.samples * s.positions; i++) {
        const float *x = (const float *)call->in[0]->data + i * s.classes;
        float *dx = (float *)call->grad_in[0]->data + i * s.classes;
        const double norm = ref_log_sum_exp(x, s.classes);

        for (int64_t c = 0; c < s.classes; c++)
            dx[c] = label[i] < 0 ? 0
                                 : (float)(g * (exp((double)x[c] - norm) -
                                                entropy_target(call, label[i], c, s.classes)));
    }
    return CO_OK;
}

const co_kernel co_ref_cross_entropy = {
    .op = "cross_entropy",
    .forward = entropy_forward,
    .backward = entropy_backward,
};
