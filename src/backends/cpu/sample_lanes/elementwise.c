/* elementwise.c - relu, add and flatten with samples in lanes. */
#include <string.h>

#include "backends/cpu/sample_lanes/kernels.h"

static co_status elementwise_relu(co_call *call, const co_run *run)
{
    const int64_t n = sample_lanes_count(call->in[0]), step = n * lanes_choose()->lanes;
    const int threads = sample_lanes_threads(call);
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int64_t b = 0; b < sample_lanes_blocks(call->in[0]); b++)
        lanes_choose()->relu(y + b * step, x + b * step, n);
    return CO_OK;
}

static co_status elementwise_relu_backward(co_call *call, const co_run *run)
{
    const int64_t n = sample_lanes_count(call->out[0]), step = n * lanes_choose()->lanes;
    const int threads = sample_lanes_threads(call);
    const float *y = call->out[0]->data, *dy;
    float *dx;

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    dx = call->grad_in[0]->data;
    dy = sample_lanes_grad_out(call);
    CO_PARALLEL_FOR(threads)
    for (int64_t b = 0; b < sample_lanes_blocks(call->out[0]); b++)
        lanes_choose()->relu_gradient(dx + b * step, y + b * step, dy + b * step, n);
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
    const int64_t n = sample_lanes_count(call->in[0]), step = n * lanes_choose()->lanes;
    const int threads = sample_lanes_threads(call);
    const float *a = call->in[0]->data, *b = call->in[1]->data;
    float *y = call->out[0]->data;

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < sample_lanes_blocks(call->in[0]); k++)
        lanes_choose()->add(y + k * step, a + k * step, b + k * step, n);
    return CO_OK;
}

/* to = from, block by block; they may be the same. */
static void elementwise_copy(const co_tensor *to, const float *from, int threads)
{
    const int64_t step = sample_lanes_count(to) * lanes_choose()->lanes;

    CO_PARALLEL_FOR(threads)
    for (int64_t b = 0; b < sample_lanes_blocks(to); b++)
        memmove((float *)to->data + b * step, from + b * step, (size_t)step * sizeof(float));
}

static co_status elementwise_add_backward(co_call *call, const co_run *run)
{
    const float *dy = sample_lanes_grad_out(call);

    (void)run;
    for (int i = 0; i < 2; i++)
        if (call->grad_in[i])
            elementwise_copy(call->grad_in[i], dy, sample_lanes_threads(call));
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
    (void)run;
    sample_lanes_unpack(call->out[0]->data, call->in[0], sample_lanes_threads(call));
    return CO_OK;
}

static co_status elementwise_flatten_backward(co_call *call, const co_run *run)
{
    const co_tensor *dy = call->grad_out[0], *dx = call->grad_in[0];
    const int threads = sample_lanes_threads(call);

    (void)run;
    if (dx && sample_lanes_is_blocked(dy))
        elementwise_copy(dx, dy->data, threads);
    else if (dx)
        (void)sample_lanes_read(dy, dx->data, threads);
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
