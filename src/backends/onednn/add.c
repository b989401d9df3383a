/*
 * add.c - sum of two tensors. The result is blocked if one of them is.
 */
#include "backends/onednn/onednn.h"

static co_status add_plan(co_call *call)
{
    onednn_self *self = call->self;
    onednn_operand a = onednn_tensor(self, call->in[0]), b = onednn_tensor(self, call->in[1]), y;
    dnnl_status_t st;

    CO_TRY(onednn_begin(call));
    onednn_like(call->out[0], call->in[0]->layout.format ? call->in[0] : call->in[1]);
    y = onednn_tensor(self, call->out[0]);
    CO_TRY(onednn_convert(&a, self, &self->forward, y.md));
    CO_TRY(onednn_convert(&b, self, &self->forward, y.md));
    st = dnnl_binary_primitive_desc_create(&self->forward_pd, self->engine, dnnl_binary_add, a.md,
                                           b.md, y.md, self->attr);
    CO_TRY(onednn_described(self, st, &self->forward_pd));
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC_0, &a}, {DNNL_ARG_SRC_1, &b}, {DNNL_ARG_DST, &y}};

        return onednn_add_step(self, &self->forward, ONEDNN_ALWAYS, self->forward_pd, arg, 3);
    }
}

static co_status add_plan_backward(co_call *call)
{
    for (int i = 0; i < 2; i++)
        if (call->grad_in[i])
            onednn_like(call->grad_in[i], call->grad_out[0]);
    return CO_OK;
}

const co_kernel co_onednn_add = {
    .op = "add",
    .reads = ONEDNN_READS,
    .self_size = sizeof(onednn_self),
    .half = ONEDNN_HALF,
    .supports = onednn_takes,
    .plan = add_plan,
    .plan_backward = add_plan_backward,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .backward = co_copy_backward,
    .fini = onednn_fini,
    .in_place = true,
};
