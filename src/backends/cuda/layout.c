/* layout.c - tensors whose channels come last, and kernels' copies of others in that layout. */
#include "kernels/cuda/layout.h"

#include "backends/cuda/cuda.h"

cuda_number cuda_number_of(co_dtype dtype)
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

cuda_extent cuda_extent_of(const co_tensor *tensor)
{
    const co_shape *shape = &tensor->shape;
    const uint32_t n = (uint32_t)shape->dim[0], channels = (uint32_t)shape->dim[1];
    const uint32_t plane = cuda_plane(shape);

    return channels > 1 && cuda_is_last(tensor) ? (cuda_extent){n * plane, channels, 1}
                                                : (cuda_extent){n, channels, plane};
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
                                             .from = cuda_number_of(from->dtype),
                                             .to = cuda_number_of(dtype)});
}

void cuda_take_plain(co_queue *queue, const co_tensor *to, const void *from, co_dtype dtype,
                     bool accumulate)
{
    layout_transpose(queue, (cuda_transpose){.out = to->data,
                                             .in = from,
                                             .n = (uint32_t)to->shape.dim[0],
                                             .rows = cuda_plane(&to->shape),
                                             .columns = (uint32_t)to->shape.dim[1],
                                             .from = cuda_number_of(dtype),
                                             .to = cuda_number_of(to->dtype),
                                             .accumulate = accumulate});
}

size_t cuda_room(const co_tensor *tensor, co_dtype dtype)
{
    const size_t bytes = cuda_count_of(tensor) * co_dtype_size(dtype);

    return (bytes + CO_DEVICE_ALIGN - 1) / CO_DEVICE_ALIGN * CO_DEVICE_ALIGN;
}

cuda_operand cuda_plan_operand(co_call *call, size_t *used, const co_tensor *tensor,
                               const co_tensor *like)
{
    cuda_operand out = {.tensor = tensor, .at = *used};

    out.copied = tensor && cuda_is_last(tensor) != cuda_is_last(like);
    if (!out.copied)
        return out;
    *used += cuda_room(tensor, tensor->dtype);
    call->scratch_bytes = *used > call->scratch_bytes ? *used : call->scratch_bytes;
    return out;
}

const void *cuda_bring_operand(const co_call *call, const cuda_operand *operand)
{
    co_tensor plain;

    if (!operand->tensor)
        return NULL;
    plain = *operand->tensor;
    if (!operand->copied)
        return plain.data;
    plain.data = (char *)call->scratch + operand->at;
    if (cuda_is_last(operand->tensor))
        cuda_take_plain(call->queue, &plain, operand->tensor->data, plain.dtype, false);
    else
        cuda_bring_last(call->queue, plain.data, plain.dtype, operand->tensor);
    return plain.data;
}

void cuda_add_bias(const co_call *call, const void *sums, co_dtype type)
{
    const co_tensor *y = call->out[0];
    const uint32_t columns = (uint32_t)y->shape.dim[1];
    cuda_add_row args = {.out = y->data,
                         .x = sums,
                         .bias = call->param[1].data,
                         .rows = cuda_count_of(y) / columns,
                         .columns = columns,
                         .together = columns % CUDA_TOGETHER == 0 ? CUDA_TOGETHER : 1,
                         .from = cuda_number_of(type),
                         .to = cuda_number_of(y->dtype),
                         .rounded = (call->round_params & 2) != 0};

    cuda_launch(call->queue, CUDA_layout_add_row, cuda_count_of(y) / args.together, &args);
}

static co_status layout_unpack(co_call *call, const co_run *run)
{
    (void)run;
    cuda_take_plain(call->queue, call->out[0], call->in[0]->data, call->in[0]->dtype, false);
    return CO_OK;
}

const co_kernel co_cuda_unpack = {
    .op = "unpack", .reads = CUDA_READS, .forward = layout_unpack, .half = CUDA_HALF};
