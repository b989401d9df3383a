/* pool.c - maxima and means of windows. */
#include "kernels/cuda/pool.h"
#include "backends/cuda/cuda.h"

/* Of the op's input (n, c, h, w) and output (n, c, oh, ow), without their data. */
static cuda_pool pool_sizes(const co_call *call, const co_shape *in, const co_shape *out)
{
    cuda_pool args = {.planes = (int32_t)(in->dim[0] * in->dim[1]),
                      .h = (int32_t)in->dim[2],
                      .w = (int32_t)in->dim[3],
                      .oh = (int32_t)out->dim[2],
                      .ow = (int32_t)out->dim[3]};
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

static co_status pool_forward(const co_call *call, cuda_kernel kernel, int32_t *place)
{
    cuda_pool args = pool_sizes(call, &call->in[0]->shape, &call->out[0]->shape);

    args.in = call->in[0]->data;
    args.out = call->out[0]->data;
    args.place = place;
    cuda_launch(call->queue, kernel, cuda_count_of(call->out[0]), &args);
    return CO_OK;
}

static co_status pool_backward(const co_call *call, cuda_kernel kernel, int32_t *place)
{
    cuda_pool args;

    if (!call->grad_in[0])
        return CO_OK;
    args = pool_sizes(call, &call->grad_in[0]->shape, &call->grad_out[0]->shape);
    args.in = call->grad_out[0]->data;
    args.out = call->grad_in[0]->data;
    args.place = place;
    cuda_launch(call->queue, kernel, cuda_count_of(call->grad_in[0]), &args);
    return CO_OK;
}

static co_status pool_max_plan(co_call *call)
{
    if (call->training)
        call->workspace_bytes = cuda_count_of(call->out[0]) * sizeof(int32_t);
    return CO_OK;
}

static co_status pool_max_forward(co_call *call, const co_run *run)
{
    (void)run;
    return pool_forward(call, CUDA_pool_max, call->workspace);
}

static co_status pool_max_backward(co_call *call, const co_run *run)
{
    (void)run;
    return pool_backward(call, CUDA_pool_max_backward, call->workspace);
}

static co_status pool_mean_forward(co_call *call, const co_run *run)
{
    (void)run;
    return pool_forward(call, CUDA_pool_mean, NULL);
}

static co_status pool_mean_backward(co_call *call, const co_run *run)
{
    (void)run;
    return pool_backward(call, CUDA_pool_mean_backward, NULL);
}

static co_status pool_parts_forward(co_call *call, const co_run *run)
{
    (void)run;
    return pool_forward(call, CUDA_pool_parts, NULL);
}

static co_status pool_parts_backward(co_call *call, const co_run *run)
{
    (void)run;
    return pool_backward(call, CUDA_pool_parts_backward, NULL);
}

const co_kernel co_cuda_maxpool = {.op = "maxpool",
                                   .supports = cuda_fits,
                                   .plan = pool_max_plan,
                                   .forward = pool_max_forward,
                                   .backward = pool_max_backward};

const co_kernel co_cuda_avgpool = {.op = "avgpool",
                                   .supports = cuda_fits,
                                   .forward = pool_mean_forward,
                                   .backward = pool_mean_backward};

const co_kernel co_cuda_adaptive_avgpool = {.op = "adaptive_avgpool",
                                            .supports = cuda_fits,
                                            .forward = pool_parts_forward,
                                            .backward = pool_parts_backward};
