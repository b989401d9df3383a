/*
 * scale.c - every value times a constant.
 *
 *   y[i]  = factor x[i]
 *
 *   dx[i] = factor dy[i]
 */
#include "backends/ref/ref.h"

static void scale_run(float *to, const float *from, const co_call *call)
{
    const co_scale_attr *a = call->attr;
    const int64_t count = co_shape_count(&call->in[0]->shape);

    for (int64_t i = 0; i < count; i++)
        to[i] = (float)(a->factor * (double)from[i]);
}

static co_status scale_forward(co_call *call, const co_run *run)
{
    (void)run;
    scale_run(call->out[0]->data, call->in[0]->data, call);
    return CO_OK;
}

static co_status scale_backward(co_call *call, const co_run *run)
{
    (void)run;
    if (call->grad_in[0])
        scale_run(call->grad_in[0]->data, call->grad_out[0]->data, call);
    return CO_OK;
}

const co_kernel co_ref_scale = {
    .op = "scale",
    .forward = scale_forward,
    .backward = scale_backward,
    .in_place = true,
};
