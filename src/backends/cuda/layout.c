/* layout.c - tensors whose channels come last, and kernels' copies of others in that layout. */
#include "kernels/cuda/layout.h"

#include "backends/cuda/cuda.h"

static cuda_number layout_number(co_dtype dtype)
{
    return dtype == CO_BF16  ? CUDA_NUMBER_BF16
           : dtype == CO_F16 ? CUDA_NUMBER_F16
                             : CUDA_NUMBER_F32;
}

bool cuda_is_last(const co_tensor *tensor)
{
    const co_shape *shape = &tensor->shape;

    return tensor->layout.format == CO_FORMAT_CHANNELS_LAST || shape->ndim < 3 ||
           shape->dim[1] == 1 || cuda_plane(shape) == 1;
}

void cuda_set_last(co_tensor *tensor)
{
    if (!cuda_is_last(tensor))
        tensor->layout = (co_layout){.format = CO_FORMAT_CHANNELS_LAST};
}

static void layout_transpose(co_queue *queue, cuda_transpose args)
{
    const uint32_t tile = CUDA_TRANSPOSE_TILE;
    const size_t down = (args.rows + tile - 1) / tile, across = (args.columns + tile - 1) / tile;

    cuda_launch_blocks(queue, CUDA_layout_transpose, args.n * down * across, &args);
}

void cuda_bring_last(co_queue *queue, void *to, co_dtype dtype, const co_tensor *from)
{
    const bool last = cuda_is_last(from);
    const uint32_t n = (uint32_t)from->shape.dim[0], channels = (uint32_t)from->shape.dim[1];
    const uint32_t plane = cuda_plane(&from->shape);

    layout_transpose(queue, (cuda_transpose){.out = to,
                                             .in = from->data,
                                             .n = n,
                                             .rows = last ? 1 : channels,
                                             .columns = last ? channels * plane : plane,
                                             .from = layout_number(from->dtype),
                                             .to = layout_number(dtype)});
}

void cuda_take_plain(co_queue *queue, const co_tensor *to, const void *from, co_dtype dtype,
                     bool accumulate)
{
    layout_transpose(queue, (cuda_transpose){.out = to->data,
                                             .in = from,
                                             .n = (uint32_t)to->shape.dim[0],
                                             .rows = cuda_plane(&to->shape),
                                             .columns = (uint32_t)to->shape.dim[1],
                                             .from = layout_number(dtype),
                                             .to = layout_number(to->dtype),
                                             .accumulate = accumulate});
}

void cuda_add_bias(const co_call *call, const void *sums, co_dtype type)
{
    const co_tensor *y = call->out[0];
    cuda_add_row args = {.out = y->data,
                         .x = sums,
                         .bias = call->param[1].data,
                         .rows = cuda_count_of(y) / (size_t)y->shape.dim[1],
                         .columns = (uint32_t)y->shape.dim[1],
                         .from = layout_number(type),
                         .to = layout_number(y->dtype),
                         .rounded = (call->round_params & 2) != 0};

    cuda_launch(call->queue, CUDA_layout_add_row, cuda_count_of(y), &args);
}

static co_status layout_unpack(co_call *call, const co_run *run)
{
    (void)run;
    cuda_take_plain(call->queue, call->out[0], call->in[0]->data, call->in[0]->dtype, false);
    return CO_OK;
}

const co_kernel co_cuda_unpack = {.op = "unpack",
                                  .reads = CO_READS(CO_FORMAT_CHANNELS_LAST),
                                  .forward = layout_unpack,
                                  .half = 1u << CO_BF16 | 1u << CO_F16};
