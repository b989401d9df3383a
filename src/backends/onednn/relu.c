/*
 * relu.c - negative values become zero, in any layout.
 */
#include "backends/onednn/onednn.h"

static dnnl_status_t relu_describe(co_call *call, const_dnnl_memory_desc_t x,
                                   const_dnnl_memory_desc_t y)
{
    onednn_self *self = call->self;

    return dnnl_eltwise_forward_primitive_desc_create(
        &self->forward_pd, self->engine, onednn_direction(call), dnnl_eltwise_relu_use_dst_for_bwd,
        x, y, 0, 0, self->attr);
}

static dnnl_status_t relu_describe_backward(dnnl_primitive_desc_t *pd, onednn_self *self,
                                            const_dnnl_memory_desc_t dx,
                                            const_dnnl_memory_desc_t dy, const_dnnl_memory_desc_t y)
{
    return dnnl_eltwise_backward_primitive_desc_create(pd, self->engine,
                                                       dnnl_eltwise_relu_use_dst_for_bwd, dx, dy, y,
                                                       0, 0, self->forward_pd, self->attr);
}

static co_status relu_plan(co_call *call)
{
    return onednn_plan_saves_output(call, relu_describe);
}

static co_status relu_plan_backward(co_call *call)
{
    return onednn_plan_backward_saves_output(call, relu_describe_backward);
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
