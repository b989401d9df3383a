/*
 * embedding.c - a row of the weight for each token.
 *
 *   y[n][t][f] = w[x[n][t]][f]
 *
 *   dw[v][f]   = sum of dy[n][t][f] over all n, t with x[n][t] = v
 */
#include <string.h>

#include "backends/ref/ref.h"

static co_status embedding_forward(co_call *call, const co_run *run)
{
    const int64_t tokens = co_shape_count(&call->in[0]->shape);
    const int64_t size = call->param[0].shape.dim[1];
    const int32_t *x = call->in[0]->data;
    const float *w = call->param[0].data;
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t i = 0; i < tokens; i++)
        memcpy(y + i * size, w + x[i] * size, (size_t)size * sizeof(float));
    return CO_OK;
}

/* The sums of one feature, (vocab). */
static co_status embedding_plan_backward(co_call *call)
{
    call->scratch_bytes = (size_t)call->param[0].shape.dim[0] * sizeof(double);
    return CO_OK;
}

static co_status embedding_backward(co_call *call, const co_run *run)
{
    const int64_t tokens = co_shape_count(&call->in[0]->shape);
    const int64_t vocab = call->param[0].shape.dim[0], size = call->param[0].shape.dim[1];
    const int32_t *x = call->in[0]->data;
    const float *dy = call->grad_out[0]->data;
    float *dw = call->grad_param[0].data;
    double *sum = call->scratch;

    for (int64_t f = 0; f < size; f++) {
        memset(sum, 0, (size_t)vocab * sizeof(*sum));
        for (int64_t i = 0; i < tokens; i++)
            sum[x[i]] += (double)dy[i * size + f];
        for (int64_t v = 0; v < vocab; v++)
            ref_put(dw + v * size + f, sum[v], run);
    }
    return CO_OK;
}

const co_kernel co_ref_embedding = {
    .op = "embedding",
    .plan_backward = embedding_plan_backward,
    .forward = embedding_forward,
    .backward = embedding_backward,
};
