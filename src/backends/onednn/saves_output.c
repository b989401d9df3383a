/*
 * saves_output.c - plans of ops with one input, whose backward reads the output.
 */
#include "backends/onednn/onednn.h"

co_status onednn_plan_saves_output(co_call *call, onednn_forward_desc_fn describe)
{
    onednn_self *self = call->self;
    const onednn_operand x = onednn_tensor(self, call->in[0]);
    onednn_operand y;

    CO_TRY(onednn_begin(call));
    onednn_like(call->out[0], call->in[0]);
    y = onednn_tensor(self, call->out[0]);
    CO_TRY(onednn_described(self, describe(call, x.md, y.md), &self->forward_pd));
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC, &x}, {DNNL_ARG_DST, &y}};

        return onednn_add_step(self, &self->forward, ONEDNN_ALWAYS, self->forward_pd, arg, 2);
    }
}

co_status onednn_plan_backward_saves_output(co_call *call, onednn_backward_desc_fn describe)
{
    onednn_self *self = call->self;
    const onednn_operand y = onednn_tensor(self, call->out[0]);
    onednn_operand dy = onednn_tensor(self, call->grad_out[0]), dx;
    dnnl_primitive_desc_t pd = NULL;

    if (!call->grad_in[0])
        return CO_OK;
    (void)onednn_use_threads(call);
    /* The incoming gradient keeps its layout where possible: then dx can share its memory. */
    onednn_like(call->grad_in[0], onednn_same(dy.md, y.md) ? call->grad_out[0] : call->out[0]);
    dx = onednn_tensor(self, call->grad_in[0]);
    CO_TRY(onednn_convert(&dy, self, &self->backward, y.md));
    CO_TRY(onednn_described(self, describe(&pd, self, dx.md, dy.md, y.md), &pd));
    {
        const onednn_arg arg[] = {
            {DNNL_ARG_DST, &y}, {DNNL_ARG_DIFF_DST, &dy}, {DNNL_ARG_DIFF_SRC, &dx}};

        return onednn_add_step(self, &self->backward, ONEDNN_ALWAYS, pd, arg, 3);
    }
}
