/*
 * nll_loss.c - negative log-likelihood of the right class.
 *
 *   l[n]     = -x[n][t[n]]           x log-probabilities (N, C), t labels (N)
 *
 *   dx[n][c] = -g if c = t[n], else 0
 *
 * g is d objective / d l[n]: one over the global batch for a mean. Labels are below C: the loader
 * has checked them.
 */
#include <string.h>

#include "backends/ref/ref.h"

static co_status nll_loss_forward(co_call *call, const co_run *run)
{
    const int64_t rows = call->in[0]->shape.dim[0], classes = call->in[0]->shape.dim[1];
    const float *x = call->in[0]->data;
    const int32_t *label = call->in[1]->data;
    float *loss = call->out[0]->data;

    (void)run;
    for (int64_t n = 0; n < rows; n++)
        loss[n] = -x[n * classes + label[n]];
    return CO_OK;
}

static co_status nll_loss_backward(co_call *call, const co_run *run)
{
    const int64_t rows = call->in[0]->shape.dim[0], classes = call->in[0]->shape.dim[1];
    const int32_t *label = call->in[1]->data;
    co_tensor *dx = call->grad_in[0];

    if (!dx)
        return CO_OK;
    memset(dx->data, 0, dx->bytes);
    for (int64_t n = 0; n < rows; n++)
        ((float *)dx->data)[n * classes + label[n]] = -co_run_grad_scale(run);
    return CO_OK;
}

const co_kernel co_ref_nll_loss = {
    .op = "nll_loss",
    .forward = nll_loss_forward,
    .backward = nll_loss_backward,
};
