/*
 * log_softmax.c - logits to log-probabilities.
 */
#include "backends/onednn/onednn.h"

static co_status log_softmax_plan(co_call *call)
{
    onednn_self *self = call->self;
    const onednn_operand x = onednn_tensor(self, call->in[0]);
    onednn_operand y;
    dnnl_status_t st;

    CO_TRY(onednn_begin(call));
    onednn_like(call->out[0], call->in[0]);
    y = onednn_tensor(self, call->out[0]);
    st = dnnl_softmax_forward_primitive_desc_create(&self->forward_pd, self->engine,
                                                    onednn_direction(call), dnnl_softmax_log, x.md,
                                                    y.md, 1, self->attr);
    CO_TRY(onednn_described(self, st, &self->forward_pd));
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC, &x}, {DNNL_ARG_DST, &y}};

        return onednn_add_step(self, &self->forward, ONEDNN_ALWAYS, self->forward_pd, arg, 2);
    }
}

static co_status log_softmax_plan_backward(co_call *call)
{
    onednn_self *self = call->self;
    const onednn_operand y = onednn_tensor(self, call->out[0]);
    onednn_operand dy = onednn_tensor(self, call->grad_out[0]), dx;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st;

    if (!call->grad_in[0])
        return CO_OK;
    CO_TRY(onednn_convert(&dy, self, &self->backward, y.md));
    onednn_like(call->grad_in[0], call->out[0]);
    dx = onednn_tensor(self, call->grad_in[0]);
    st = dnnl_softmax_backward_primitive_desc_create(&pd, self->engine, dnnl_softmax_log, dx.md,
                                                     dy.md, y.md, 1, self->forward_pd, self->attr);
    CO_TRY(onednn_described(self, st, &pd));
    {
        const onednn_arg arg[] = {
            {DNNL_ARG_DST, &y}, {DNNL_ARG_DIFF_DST, &dy}, {DNNL_ARG_DIFF_SRC, &dx}};

        return onednn_add_step(self, &self->backward, ONEDNN_ALWAYS, pd, arg, 3);
    }
}

const co_kernel co_onednn_log_softmax = {
    .op = "log_softmax",
    .reads = ONEDNN_READS,
    .self_size = sizeof(onednn_self),
    .plan = log_softmax_plan,
    .plan_backward = log_softmax_plan_backward,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .backward = onednn_backward,
    .fini = onednn_fini,
};
