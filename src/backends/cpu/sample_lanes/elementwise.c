/* elementwise.c - relu, add and flatten with samples in lanes. */
#include <string.h>

#include "backends/cpu/sample_lanes/kernels.h"

/* Vectors of a tensor. */
static int64_t elementwise_vectors(const co_tensor *tensor)
{
    return sample_lanes_blocks(tensor) * sample_lanes_count(tensor);
}

static co_status elementwise_relu(co_call *call, const co_run *run)
{
    (void)run;
    lanes_choose()->relu(call->out[0]->data, call->in[0]->data, elementwise_vectors(call->in[0]));
    return CO_OK;
}

static co_status elementwise_relu_backward(co_call *call, const co_run *run)
{
    (void)run;
    if (call->grad_in[0])
        lanes_choose()->relu_gradient(call->grad_in[0]->data, call->out[0]->data,
                                      sample_lanes_grad_out(call),
                                      elementwise_vectors(call->out[0]));
    return CO_OK;
}

const co_kernel co_cpu_lanes_relu = {
    .op = "relu",
    .name = "sample-lanes",
    .reads = CO_READS(CO_FORMAT_SAMPLE_LANES),
    .supports = sample_lanes_supports_blocked,
    .plan = sample_lanes_plan_alike,
    .plan_backward = sample_lanes_plan_backward_alike,
    .forward = elementwise_relu,
    .backward = elementwise_relu_backward,
    .in_place = true,
};

static co_status elementwise_add(co_call *call, const co_run *run)
{
    (void)run;
    lanes_choose()->add(call->out[0]->data, call->in[0]->data, call->in[1]->data,
                        elementwise_vectors(call->in[0]));
    return CO_OK;
}

static co_status elementwise_add_backward(co_call *call, const co_run *run)
{
    const float *dy = sample_lanes_grad_out(call);

    (void)run;
    for (int i = 0; i < 2; i++)
        if (call->grad_in[i])
            memmove(call->grad_in[i]->data, dy, call->grad_in[i]->bytes);
    return CO_OK;
}

const co_kernel co_cpu_lanes_add = {
    .op = "add",
    .name = "sample-lanes",
    .reads = CO_READS(CO_FORMAT_SAMPLE_LANES),
    .supports = sample_lanes_supports_blocked,
    .plan = sample_lanes_plan_alike,
    .plan_backward = sample_lanes_plan_backward_alike,
    .forward = elementwise_add,
    .backward = elementwise_add_backward,
    .in_place = true,
};

/* The next layer wants rows, so flatten also leaves this layout. */
static co_status elementwise_flatten(co_call *call, const co_run *run)
{
    const co_tensor *in = call->in[0];

    (void)run;
    lanes_choose()->unpack(call->out[0]->data, in->data, in->shape.dim[0], sample_lanes_count(in));
    return CO_OK;
}

static co_status elementwise_flatten_backward(co_call *call, const co_run *run)
{
    const co_tensor *dy = call->grad_out[0], *dx = call->grad_in[0];

    (void)run;
    if (dx && sample_lanes_is_blocked(dy))
        memmove(dx->data, dy->data, dx->bytes);
    else if (dx)
        lanes_choose()->pack(dx->data, dy->data, dy->shape.dim[0], sample_lanes_count(dy));
    return CO_OK;
}

const co_kernel co_cpu_lanes_flatten = {
    .op = "flatten",
    .name = "sample-lanes",
    .reads = CO_READS(CO_FORMAT_SAMPLE_LANES),
    .supports = sample_lanes_supports_blocked,
    .plan_backward = sample_lanes_plan_backward_alike,
    .forward = elementwise_flatten,
    .backward = elementwise_flatten_backward,
};
