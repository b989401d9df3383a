/*
 * dropout.c - drop random elements (dropout) or whole channels (dropout2d) in training.
 *
 *   y[n][e]  = m[n][e] x[n][e],    m[n][e] = 0 if u[n][e] < p, else 1 / (1 - p)
 *
 *   dx[n][e] = m[n][e] dy[n][e]
 *
 * u is a pure function of (seed, node, step, sample, element), so backward makes m again instead
 * of keeping it, and any number of ranks drops the same elements. Outside training y = x.
 */
#include <string.h>

#include "backends/ref/ref.h"
#include "core/rng.h"

/* One random number drops `span` neighbours: 1 element, or the H * W of a channel. */
static int64_t dropout_span(const co_call *call)
{
    const co_shape *s = &call->in[0]->shape;

    return strcmp(call->op->name, "dropout2d") == 0 ? s->dim[2] * s->dim[3] : 1;
}

static int64_t dropout_sample_count(const co_call *call)
{
    return co_shape_count(&call->in[0]->shape) / call->in[0]->shape.dim[0];
}

static co_status dropout_plan(co_call *call)
{
    call->scratch_bytes = (size_t)dropout_sample_count(call) * sizeof(float);
    return CO_OK;
}

/* to = m * from: the rule of both directions. */
static void dropout_apply(const co_tensor *to, const co_tensor *from, const co_call *call,
                          const co_run *run)
{
    const co_dropout_attr *a = call->attr;
    const int64_t rows = from->shape.dim[0], count = dropout_sample_count(call);
    const int64_t span = dropout_span(call);
    const float scale = (float)(1 / (1 - a->p));
    float *u = call->scratch;

    for (int64_t n = 0; n < rows; n++) {
        const co_rng rng = {run->seed, CO_RNG_DROPOUT | call->node << 8, run->values->given.step,
                            run->sample[n]};
        const float *x = (const float *)from->data + n * count;
        float *y = (float *)to->data + n * count;

        co_rng_uniform(u, &rng, 0, (uint64_t)(count / span));
        for (int64_t e = 0; e < count; e++)
            y[e] = (double)u[e / span] < a->p ? 0 : x[e] * scale;
    }
}

static co_status dropout_forward(co_call *call, const co_run *run)
{
    if (!call->training)
        return co_copy_forward(call, run);
    dropout_apply(call->out[0], call->in[0], call, run);
    return CO_OK;
}

static co_status dropout_backward(co_call *call, const co_run *run)
{
    if (call->grad_in[0])
        dropout_apply(call->grad_in[0], call->grad_out[0], call, run);
    return CO_OK;
}

const co_kernel co_ref_dropout = {
    .op = "dropout",
    .plan = dropout_plan,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .in_place = true,
};

const co_kernel co_ref_dropout2d = {
    .op = "dropout2d",
    .plan = dropout_plan,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .in_place = true,
};
