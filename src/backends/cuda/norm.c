/* norm.c - batch norm, with the statistics of this rank's batch or of all ranks', layer norm and
   RMS norm. */
#include "kernels/cuda/norm.h"

#include "backends/cuda/cuda.h"

/* ---- batch norm ---- */

/* Sizes (n, channels, plane) of the op's input; `stat` is kept from forward to backward. */
static cuda_norm norm_batch_sizes(const co_call *call)
{
    const co_shape *shape = &call->in[0]->shape;

    return (cuda_norm){.x = call->in[0]->data,
                       .weight = call->param[0].data,
                       .bias = call->param[1].data,
                       .stat = call->training ? call->workspace : call->scratch,
                       .n = (uint32_t)shape->dim[0],
                       .channels = (uint32_t)shape->dim[1],
                       .plane = cuda_plane(shape)};
}

static size_t norm_sums_bytes(const co_call *call)
{
    const cuda_norm s = norm_batch_sizes(call);

    return cuda_sums_room(s.n, s.channels, s.plane) * sizeof(double);
}

/* Of all ranks: two sums of each channel, and a count. */
static size_t norm_total_bytes(const co_call *call)
{
    return call->over_ranks ? (2 * (size_t)call->in[0]->shape.dim[1] + 1) * sizeof(double) : 0;
}

/* Scratch: means of the gradient or statistics in evaluation, then parts of sums, then totals. */
static co_status norm_batch_plan(co_call *call)
{
    const size_t stats = (size_t)call->in[0]->shape.dim[1] * sizeof(cuda_stat);

    call->scratch_bytes =
        stats + (call->training ? norm_sums_bytes(call) + norm_total_bytes(call) : 0);
    call->workspace_bytes = call->training ? stats : 0;
    return CO_OK;
}

static double *norm_parts(const co_call *call, uint32_t channels)
{
    return (double *)(void *)((cuda_stat *)call->scratch + channels);
}

/* The sums of this rank become those of all ranks, and then `kernel` is launched. */
static co_status norm_over_ranks(const co_call *call, const co_run *run, const cuda_sums *sums,
                                 cuda_settle *settle, cuda_kernel kernel)
{
    const size_t n = 2 * (size_t)sums->channels + 1;

    settle->total = sums->part + cuda_sums_room(sums->n, sums->channels, sums->plane);
    cuda_launch(call->queue, CUDA_norm_totals, sums->channels, settle);
    CO_TRY(run->reduce(run->reduce_arg, settle->total, n));
    cuda_launch(call->queue, kernel, sums->channels, settle);
    return CO_OK;
}

static co_status norm_batch_measure(const co_call *call, const co_run *run, cuda_sums *sums,
                                    cuda_settle *settle)
{
    double *part = norm_parts(call, sums->channels);

    if (!call->over_ranks) {
        cuda_sum_channels(call, sums, CUDA_norm_settle_moments, settle, part);
        return CO_OK;
    }
    sums->shift = settle->running_mean;
    settle->phantom = run->phantom;
    cuda_sum_parts(call, sums, settle, part);
    return norm_over_ranks(call, run, sums, settle, CUDA_norm_settle_moments);
}

static co_status norm_batch_forward(co_call *call, const co_run *run)
{
    const co_batchnorm_attr *a = call->attr;
    cuda_norm args = norm_batch_sizes(call);
    cuda_settle settle = {.channels = args.channels,
                          .x = args.x,
                          .stat = args.stat,
                          .running_mean = call->param[2].data,
                          .running_var = call->param[3].data,
                          .eps = a->eps,
                          .momentum = a->momentum};
    cuda_sums sums = {.x = args.x,
                      .n = args.n,
                      .channels = args.channels,
                      .plane = args.plane,
                      .kind = CUDA_MOMENTS};

    if (call->training)
        CO_TRY(norm_batch_measure(call, run, &sums, &settle));
    else
        cuda_launch(call->queue, CUDA_norm_recall, args.channels, &settle);
    args.out = call->out[0]->data;
    cuda_launch(call->queue, CUDA_norm_batch, cuda_count_of(call->out[0]), &args);
    return CO_OK;
}

static co_status norm_batch_backward(co_call *call, const co_run *run)
{
    cuda_norm args = norm_batch_sizes(call);
    cuda_settle settle = {.dw = call->grad_param[0].data,
                          .db = call->grad_param[1].data,
                          .mean = call->scratch,
                          .accumulate = run->accumulate};
    cuda_sums sums = {.x = args.x,
                      .dy = call->grad_out[0]->data,
                      .stat = args.stat,
                      .n = args.n,
                      .channels = args.channels,
                      .plane = args.plane,
                      .kind = CUDA_GRADIENTS};

    settle.phantom = run->phantom;
    cuda_sum_channels(call, &sums, CUDA_norm_settle_gradients, &settle,
                      norm_parts(call, args.channels));
    if (call->over_ranks)
        CO_TRY(norm_over_ranks(call, run, &sums, &settle, CUDA_norm_settle_means));
    if (!call->grad_in[0])
        return CO_OK;
    if (run->phantom)
        return call->queue->device->ops->fill(call->queue, call->grad_in[0]->data, 0,
                                              cuda_count_of(call->grad_in[0]) * sizeof(float));
    args.out = call->grad_in[0]->data;
    args.dy = sums.dy;
    args.mean = settle.mean;
    cuda_launch(call->queue, CUDA_norm_batch_backward, cuda_count_of(call->grad_in[0]), &args);
    return CO_OK;
}

/* ---- layer norm and RMS norm ---- */

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
                       .stat = call->workspace,
                       .n = (uint32_t)(co_shape_count(&call->in[0]->shape) / size),
                       .channels = (uint32_t)size,
                       .plane = 1,
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
                      .dy = call->grad_out[0]->data,
                      .stat = args.stat,
                      .n = args.n,
                      .channels = args.channels,
                      .plane = 1,
                      .kind = CUDA_OF_ROWS};

    cuda_sum_channels(call, &sums, CUDA_norm_settle_gradients, &settle, call->scratch);
    if (!call->grad_in[0])
        return CO_OK;
    args.out = call->grad_in[0]->data;
    args.dy = sums.dy;
    cuda_launch_blocks(call->queue, CUDA_norm_layer_backward, args.n, &args);
    return CO_OK;
}

const co_kernel co_cuda_batchnorm = {.op = "batchnorm",
                                     .supports = cuda_fits,
                                     .plan = norm_batch_plan,
                                     .forward = norm_batch_forward,
                                     .backward = norm_batch_backward};

const co_kernel co_cuda_layernorm = {.op = "layernorm",
                                     .supports = cuda_fits,
                                     .plan = norm_layer_plan,
                                     .forward = norm_layer_forward,
                                     .backward = norm_layer_backward};

const co_kernel co_cuda_rmsnorm = {.op = "rmsnorm",
                                   .supports = cuda_fits,
                                   .plan = norm_layer_plan,
                                   .forward = norm_layer_forward,
                                   .backward = norm_layer_backward};
