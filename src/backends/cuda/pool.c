/* pool.c - maxima and means of windows, in the layout and the type of the input. */
#include "kernels/cuda/pool.h"
#include "backends/cuda/cuda.h"

typedef struct pool_self {
    cuda_operand dy;
} pool_self;

/* Of the op, without its data. */
static cuda_pool pool_sizes(const co_call *call)
{
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const bool last = cuda_is_last(call->in[0]);
    const bool many = last && in[1] % CUDA_TOGETHER == 0;
    cuda_pool args = {.images = (int32_t)(last ? in[0] : in[0] * in[1]),
                      .channels = (int32_t)(last ? in[1] : 1),
                      .h = (int32_t)in[2],
                      .w = (int32_t)in[3],
                      .oh = (int32_t)out[2],
                      .ow = (int32_t)out[3],
                      .together = many ? CUDA_TOGETHER : 1,
                      .type = cuda_number_of(call->in[0]->dtype)};
    const co_pool_attr *a = call->attr;

    if (call->op == &co_op_adaptive_avgpool)
        return args;
    for (int d = 0; d < 2; d++) {
        args.kernel[d] = (int32_t)a->k[d];
        args.stride[d] = (int32_t)a->s[d];
        args.padding[d] = (int32_t)a->p[d];
    }
    args.count_padding = a->count_include_pad;
    return args;
}

static bool pool_keeps_places(const co_call *call)
{
    return call->op == &co_op_maxpool && call->training;
}

static co_status pool_plan(co_call *call)
{
    if (cuda_is_last(call->in[0]))
        cuda_set_last(call->out[0]);
    if (pool_keeps_places(call))
        call->workspace_bytes = cuda_count_of(call->out[0]) * sizeof(int32_t);
    return CO_OK;
}

/* A result of one element for each channel is in either layout. */
static co_status pool_plan_backward(co_call *call)
{
    pool_self *self = call->self;
    size_t used = 0;

    self->dy = cuda_plan_operand(call, &used, call->grad_out[0], call->out[0]);
    if (call->grad_in[0])
        call->grad_in[0]->layout = call->in[0]->layout;
    return CO_OK;
}

static co_status pool_forward(const co_call *call, cuda_kernel kernel)
{
    cuda_pool args = pool_sizes(call);

    args.in = call->in[0]->data;
    args.out = call->out[0]->data;
    args.place = pool_keeps_places(call) ? call->workspace : NULL;
    cuda_launch(call->queue, kernel, cuda_count_of(call->out[0]) / (size_t)args.together, &args);
    return CO_OK;
}

static co_status pool_backward(const co_call *call, cuda_kernel kernel)
{
    cuda_pool args = pool_sizes(call);

    if (!call->grad_in[0])
        return CO_OK;
    args.in = cuda_bring_operand(call, &((const pool_self *)call->self)->dy);
    args.out = call->grad_in[0]->data;
    args.place = call->workspace;
    cuda_launch(call->queue, kernel, cuda_count_of(call->in[0]) / (size_t)args.together, &args);
    return CO_OK;
}

#define POOL_KERNEL(name, kernel)                                                                  \
    static co_status pool_##name##_forward(co_call *call, const co_run *run)                       \
    {                                                                                              \
        (void)run;                                                                                 \
        return pool_forward(call, CUDA_pool_##kernel);                                             \
    }                                                                                              \
                                                                                                   \
    static co_status pool_##name##_backward(co_call *call, const co_run *run)                      \
    {                                                                                              \
        (void)run;                                                                                 \
        return pool_backward(call, CUDA_pool_##kernel##_backward);                                 \
    }                                                                                              \
                                                                                                   \
    const co_kernel co_cuda_##name = {.op = #name,                                                 \
                                      .reads = CUDA_READS,                                         \
                                      .half = CUDA_HALF,                                           \
                                      .self_size = sizeof(pool_self),                              \
                                      .supports = cuda_fits,                                       \
                                      .plan = pool_plan,                                           \
                                      .plan_backward = pool_plan_backward,                         \
                                      .forward = pool_##name##_forward,                            \
                                      .backward = pool_##name##_backward}

POOL_KERNEL(maxpool, max);
POOL_KERNEL(avgpool, mean);
POOL_KERNEL(adaptive_avgpool, parts);
