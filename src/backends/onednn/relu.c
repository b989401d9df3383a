/*
 * relu.c - negative values become zero, in any layout.
 */
#include "backends/onednn/onednn.h"

static co_status relu_plan(co_call *call)
{
    onednn_self *self = call->self;
    const onednn_operand x = onednn_tensor(self, call->in[0]);
    onednn_operand y;
    dnnl_status_t st;

    CO_TRY(onednn_begin(call));
    onednn_like(call->out[0], call->in[0]);
    y = onednn_tensor(self, call->out[0]);
    st = dnnl_eltwise_forward_primitive_desc_create(
        &self->forward_pd, self->engine, onednn_direction(call), dnnl_eltwise_relu_use_dst_for_bwd,
        x.md, y.md, 0, 0, self->attr);
    CO_TRY(onednn_described(self, st, &self->forward_pd));
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC, &x}, {DNNL_ARG_DST, &y}};

        return onednn_add_step(self, &self->forward, ONEDNN_ALWAYS, self->forward_pd, arg, 2);
    }
}

static co_status relu_plan_backward(co_call *call)
{
    onednn_self *self = call->self;
    const onednn_operand y = onednn_tensor(self, call->out[0]);
    onednn_operand dy = onednn_tensor(self, call->grad_out[0]), dx;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st;

    if (!call->grad_in[0])
        return CO_OK;
    (void)onednn_use_threads(call);
    /* The incoming gradient keeps its layout where possible: then dx can share its memory. */
    onednn_like(call->grad_in[0], onednn_same(dy.md, y.md) ? call->grad_out[0] : call->out[0]);
    dx = onednn_tensor(self, call->grad_in[0]);
    CO_TRY(onednn_convert(&dy, self, &self->backward, y.md));
    st = dnnl_eltwise_backward_primitive_desc_create(
        &pd, self->engine, dnnl_eltwise_relu_use_dst_for_bwd, dx.md, dy.md, y.md, 0, 0,
        self->forward_pd, self->attr);
    CO_TRY(onednn_described(self, st, &pd));
    {
        const onednn_arg arg[] = {
            {DNNL_ARG_DST, &y}, {DNNL_ARG_DIFF_DST, &dy}, {DNNL_ARG_DIFF_SRC, &dx}};

        return onednn_add_step(self, &self->backward, ONEDNN_ALWAYS, pd, arg, 3);
    }
}

const co_kernel co_onednn_relu = {
    .op = "relu",
    .reads = ONEDNN_READS,
    .self_size = sizeof(onednn_self),
    .half = ONEDNN_HALF,
    .supports = onednn_takes,
    .plan = relu_plan,
    .plan_backward = relu_plan_backward,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .backward = onednn_backward,
    .fini = onednn_fini,
    .in_place = true,
};
