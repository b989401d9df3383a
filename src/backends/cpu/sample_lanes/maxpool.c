/*
 * maxpool.c - max pooling with samples in lanes. In training the index of each maximum in its
 * window is kept as a byte.
 */
#include "backends/cpu/sample_lanes/kernels.h"

lanes_pool sample_lanes_describe_pool(const co_pool_attr *a, const int64_t *in, const int64_t *out)
{
    return (lanes_pool){
        .h = in[2],
        .w = in[3],
        .oh = out[2],
        .ow = out[3],
        .step = out[3],
        .kh = a->k[0],
        .kw = a->k[1],
        .sh = a->s[0],
        .sw = a->s[1],
        .ph = a->p[0],
        .pw = a->p[1],
    };
}

static lanes_pool maxpool_windows(const co_call *call)
{
    return sample_lanes_describe_pool(call->attr, call->in[0]->shape.dim, call->out[0]->shape.dim);
}

static bool maxpool_supports(const co_call *call, const char **why)
{
    const co_pool_attr *a = call->attr;

    if (!sample_lanes_supports_blocked(call, why))
        return false;
    *why = "its windows have more than 256 elements";
    return a->k[0] <= 256 && a->k[1] <= 256 && a->k[0] * a->k[1] <= 256;
}

static co_status maxpool_plan(co_call *call)
{
    sample_lanes_block(call->out[0]);
    if (call->training)
        call->workspace_bytes = call->out[0]->bytes / sizeof(float);
    return CO_OK;
}

static co_status maxpool_forward(co_call *call, const co_run *run)
{
    const lanes_loops *lanes = lanes_choose();
    const lanes_pool pool = maxpool_windows(call);
    const int64_t planes = sample_lanes_blocks(call->in[0]) * call->in[0]->shape.dim[1];
    const int64_t in = pool.h * pool.w * lanes->lanes, out = pool.oh * pool.ow * lanes->lanes;
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;
    uint8_t *place = call->training ? call->workspace : NULL;
    const int threads = sample_lanes_threads(call);

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int64_t p = 0; p < planes; p++)
        lanes->maxpool(y + p * out, place ? place + p * out : NULL, x + p * in, &pool);
    return CO_OK;
}

static co_status maxpool_backward(co_call *call, const co_run *run)
{
    const lanes_loops *lanes = lanes_choose();
    const lanes_pool pool = maxpool_windows(call);
    const int64_t planes = sample_lanes_blocks(call->in[0]) * call->in[0]->shape.dim[1];
    const int64_t in = pool.h * pool.w * lanes->lanes, out = pool.oh * pool.ow * lanes->lanes;
    const uint8_t *place = call->workspace;
    const int threads = sample_lanes_threads(call);
    const float *dy;
    float *dx;

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    dy = sample_lanes_grad_out(call);
    dx = call->grad_in[0]->data;
    CO_PARALLEL_FOR(threads)
    for (int64_t p = 0; p < planes; p++)
        lanes->maxpool_gradient(dx + p * in, place + p * out, dy + p * out, &pool);
    return CO_OK;
}

const co_kernel co_cpu_lanes_maxpool = {
    .op = "maxpool",
    .name = "sample-lanes",
    .reads = CO_READS(CO_FORMAT_SAMPLE_LANES),
    .supports = maxpool_supports,
    .plan = maxpool_plan,
    .plan_backward = sample_lanes_plan_backward_alike,
    .forward = maxpool_forward,
    .backward = maxpool_backward,
};
