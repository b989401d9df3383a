/*
 * layout.c - layouts of images as strides for the loops of kernels/reorder, and `unpack`, which
 * converts them to the plain layout for other backends.
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/sample_lanes/kernels.h"
#include "core/parallel.h"

co_layout cpu_plain(void)
{
    return (co_layout){.format = CO_FORMAT_PLAIN};
}

co_layout cpu_blocks(int block)
{
    return (co_layout){.format = CO_FORMAT_CHANNEL_BLOCKS, .block = block};
}

bool cpu_is_blocked(const co_tensor *tensor, int block)
{
    return tensor->layout.format == CO_FORMAT_CHANNEL_BLOCKS && tensor->layout.block == block;
}

reorder_places cpu_find_places(const co_shape *shape, co_layout layout)
{
    const int64_t c = shape->ndim > 1 ? shape->dim[1] : 1;
    int64_t plane = 1;

    for (int i = 2; i < shape->ndim; i++)
        plane *= shape->dim[i];
    if (layout.format == CO_FORMAT_CHANNEL_BLOCKS)
        return reorder_blocks(c, plane, layout.block);
    if (layout.format == CO_FORMAT_CHANNELS_LAST)
        return reorder_last(c, plane);
    return reorder_plain(c, plane);
}

void cpu_set_layout(co_tensor *tensor, co_layout layout)
{
    const reorder_places places = cpu_find_places(&tensor->shape, layout);

    tensor->layout = layout;
    tensor->bytes = (size_t)(tensor->shape.dim[0] * places.sample) * co_dtype_size(tensor->dtype);
}

void cpu_like(co_tensor *tensor, const co_tensor *other)
{
    tensor->layout = other->layout;
    tensor->bytes = other->bytes;
}

void cpu_reorder(void *to, co_layout layout, const co_tensor *from, int threads)
{
    const reorder_loops *loops = reorder_choose();
    const reorder_places tos = cpu_find_places(&from->shape, layout);
    const reorder_places froms = cpu_find_places(&from->shape, from->layout);
    const int64_t cell = (int64_t)co_dtype_size(from->dtype);

    CO_PARALLEL_FOR(threads)
    for (int64_t n = 0; n < from->shape.dim[0]; n++) {
        char *t = (char *)to + n * tos.sample * cell;
        const char *f = (const char *)from->data + n * froms.sample * cell;

        if (cell == sizeof(float))
            loops->floats(t, &tos, f, &froms);
        else
            loops->halves(t, &tos, f, &froms);
    }
}

static bool layout_supports(const co_call *call, const char **why)
{
    *why = "its samples are in lanes, which are floats";
    return call->in[0]->dtype == CO_F32 || !sample_lanes_is_blocked(call->in[0]);
}

static co_status layout_unpack(co_call *call, const co_run *run)
{
    const co_tensor *in = call->in[0];

    (void)run;
    if (sample_lanes_is_blocked(in))
        sample_lanes_unpack(call->out[0]->data, in, sample_lanes_threads(call));
    else
        cpu_reorder(call->out[0]->data, cpu_plain(), in, cpu_threads(call));
    return CO_OK;
}

const co_kernel co_cpu_unpack = {
    .op = "unpack",
    .reads = CPU_READS | CO_READS(CO_FORMAT_SAMPLE_LANES),
    .half = 1u << CO_BF16 | 1u << CO_F16,
    .supports = layout_supports,
    .forward = layout_unpack,
};
