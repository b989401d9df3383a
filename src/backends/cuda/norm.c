/* norm.c - layer norm and RMS norm. */
#include "kernels/cuda/norm.h"

#include "backends/cuda/cuda.h"

/* Rows are `n`, what is normalised `channels`. */
static cuda_norm norm_layer_sizes(const co_call *call)
{
    const bool rms = call->op == &co_op_rmsnorm;
    const double eps = rms ? ((const co_rmsnorm_attr *)call->attr)->eps
                           : ((const co_layernorm_attr *)call->attr)->eps;
    const int64_t size = call->param[0].shape.dim[0];

    return (cuda_norm){.x = call->in[0]->data,
                       .weight = call->param[0].data,
                       .bias = call->n_param > 1 ? call->param[1].data : NULL,
                       .type = cuda_number_of(call->in[0]->dtype),
                       .rounded = call->round_params != 0,
                       .stat = call->workspace,
                       .n = (uint32_t)(co_shape_count(&call->in[0]->shape) / size),
                       .channels = (uint32_t)size,
                       .eps = (float)eps,
                       .rms = rms};
}

static co_status norm_layer_plan(co_call *call)
{
    const cuda_norm s = norm_layer_sizes(call);

    if (call->training) {
        call->workspace_bytes = s.n * sizeof(cuda_stat);
        call->scratch_bytes = cuda_sums_room(s.n, s.channels, 1) * sizeof(double);
    }
    return CO_OK;
}

static co_status norm_layer_forward(co_call *call, const co_run *run)
{
    cuda_norm args = norm_layer_sizes(call);

    (void)run;
    args.out = call->out[0]->data;
    cuda_launch_blocks(call->queue, CUDA_norm_layer, args.n, &args);
    return CO_OK;
}

static co_status norm_layer_backward(co_call *call, const co_run *run)
{
    cuda_norm args = norm_layer_sizes(call);
    cuda_settle settle = {.dw = call->grad_param[0].data,
                          .db = args.bias ? call->grad_param[1].data : NULL,
                          .accumulate = run->accumulate};
    cuda_sums sums = {.x = args.x,
                      .in = {.dy = call->grad_out[0]->data},
                      .stat = args.stat,
                      .n = args.n,
                      .channels = args.channels,
                      .plane = 1,
                      .kind = CUDA_OF_ROWS,
                      .type = args.type};

    cuda_sum_channels(call, &sums, CUDA_sums_settle_gradients, &settle, call->scratch);
    if (!call->grad_in[0])
        return CO_OK;
    args.out = call->grad_in[0]->data;
    args.dy = sums.in.dy;
    cuda_launch_blocks(call->queue, CUDA_norm_layer_backward, args.n, &args);
    return CO_OK;
}

const co_kernel co_cuda_layernorm = {.op = "layernorm",
                                     .supports = cuda_fits,
                                     .plan = norm_layer_plan,
                                     .forward = norm_layer_forward,
                                     .backward = norm_layer_backward,
                                     .half = CUDA_HALF};

const co_kernel co_cuda_rmsnorm = {.op = "rmsnorm",
                                   .supports = cuda_fits,
                                   .plan = norm_layer_plan,
                                   .forward = norm_layer_forward,
                                   .backward = norm_layer_backward,
                                   .half = CUDA_HALF};
