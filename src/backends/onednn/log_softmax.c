/*
 * log_softmax.c - logits to log-probabilities.
 */
#include "backends/onednn/onednn.h"

static dnnl_status_t log_softmax_describe(co_call *call, const_dnnl_memory_desc_t x,
                                          const_dnnl_memory_desc_t y)
{
    onednn_self *self = call->self;

    return dnnl_softmax_forward_primitive_desc_create(&self->forward_pd, self->engine,
                                                      onednn_direction(call), dnnl_softmax_log, x,
                                                      y, 1, self->attr);
}

static dnnl_status_t log_softmax_describe_backward(dnnl_primitive_desc_t *pd, onednn_self *self,
                                                   const_dnnl_memory_desc_t dx,
                                                   const_dnnl_memory_desc_t dy,
                                                   const_dnnl_memory_desc_t y)
{
    return dnnl_softmax_backward_primitive_desc_create(pd, self->engine, dnnl_softmax_log, dx, dy,
                                                       y, 1, self->forward_pd, self->attr);
}

static co_status log_softmax_plan(co_call *call)
{
    return onednn_plan_saves_output(call, log_softmax_describe);
}

static co_status log_softmax_plan_backward(co_call *call)
{
    return onednn_plan_backward_saves_output(call, log_softmax_describe_backward);
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
