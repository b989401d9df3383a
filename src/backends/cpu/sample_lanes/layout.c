/* layout.c - the layout with samples in lanes: size, conversion. */
#include <string.h>

#include "backends/cpu/sample_lanes/kernels.h"

int64_t sample_lanes_count(const co_tensor *tensor)
{
    return co_shape_count(&tensor->shape) / tensor->shape.dim[0];
}

int64_t sample_lanes_blocks(const co_tensor *tensor)
{
    const int64_t lanes = lanes_choose()->lanes;

    return (tensor->shape.dim[0] + lanes - 1) / lanes;
}

size_t sample_lanes_bytes(const co_tensor *tensor)
{
    return (size_t)(sample_lanes_blocks(tensor) * sample_lanes_count(tensor) *
                    lanes_choose()->lanes) *
           sizeof(float);
}

bool sample_lanes_is_blocked(const co_tensor *tensor)
{
    return tensor->layout.format == CO_FORMAT_SAMPLE_LANES;
}

void sample_lanes_block(co_tensor *tensor)
{
    tensor->layout = (co_layout){.format = CO_FORMAT_SAMPLE_LANES, .block = lanes_choose()->lanes};
    tensor->bytes = sample_lanes_bytes(tensor);
}

bool sample_lanes_supports_blocked(const co_call *call, const char **why)
{
    *why = "its input does not have samples in lanes";
    for (int i = 0; i < call->n_in; i++)
        if (!sample_lanes_is_blocked(call->in[i]))
            return false;
    return true;
}

size_t sample_lanes_room(const co_tensor *tensor)
{
    return sample_lanes_is_blocked(tensor) ? 0 : sample_lanes_bytes(tensor);
}

int sample_lanes_threads(const co_call *call)
{
    const int64_t blocks = sample_lanes_blocks(call->in[0]);
    const int threads = co_parallel_threads(call->threads);

    return threads < blocks ? threads : (int)blocks;
}

/* Samples of block `b`. */
static int64_t layout_samples(const co_tensor *tensor, int64_t b)
{
    const int64_t lanes = lanes_choose()->lanes, left = tensor->shape.dim[0] - b * lanes;

    return left < lanes ? left : lanes;
}

const float *sample_lanes_read_block(const co_tensor *tensor, float *room, int64_t b)
{
    const int64_t count = sample_lanes_count(tensor), at = b * count * lanes_choose()->lanes;

    if (sample_lanes_is_blocked(tensor))
        return (const float *)tensor->data + at;
    lanes_choose()->pack(room + at, (const float *)tensor->data + at, layout_samples(tensor, b),
                         count);
    return room + at;
}

const float *sample_lanes_read(const co_tensor *tensor, float *room, int threads)
{
    if (sample_lanes_is_blocked(tensor))
        return tensor->data;
    CO_PARALLEL_FOR(threads)
    for (int64_t b = 0; b < sample_lanes_blocks(tensor); b++)
        (void)sample_lanes_read_block(tensor, room, b);
    return room;
}

const float *sample_lanes_grad_out(const co_call *call)
{
    return sample_lanes_read(call->grad_out[0], call->scratch, sample_lanes_threads(call));
}

void sample_lanes_clear_rest(const co_tensor *tensor)
{
    const int64_t lanes = lanes_choose()->lanes, rest = tensor->shape.dim[0] % lanes;
    const int64_t count = sample_lanes_count(tensor);
    float *last = (float *)tensor->data + (sample_lanes_blocks(tensor) - 1) * count * lanes;

    for (int64_t e = 0; rest && e < count; e++)
        memset(last + e * lanes + rest, 0, (size_t)(lanes - rest) * sizeof(float));
}

co_extent sample_lanes_needed(const co_call *call)
{
    co_extent part = co_tensor_part_read(call->out[0]);
    int n = 0;

    while (call->fused[n])
        n++;
    while (n-- > 0)
        part = call->fused[n]->receptive(part, call->fused_attr[n]);
    return part;
}

void sample_lanes_fill_rest(void *planes, int value, size_t vector, int64_t n, co_extent plane,
                            co_extent part)
{
    char *row = planes;

    if (part.rows == plane.rows && part.columns == plane.columns)
        return;
    for (int64_t r = 0; r < n * plane.rows; r++, row += (size_t)plane.columns * vector) {
        const int64_t used = r % plane.rows < part.rows ? part.columns : 0;

        memset(row + (size_t)used * vector, value, (size_t)(plane.columns - used) * vector);
    }
}

co_status sample_lanes_plan_alike(co_call *call)
{
    sample_lanes_block(call->out[0]);
    return CO_OK;
}

co_status sample_lanes_plan_backward_alike(co_call *call)
{
    const size_t room = sample_lanes_room(call->grad_out[0]);

    if (room > call->scratch_bytes)
        call->scratch_bytes = room;
    for (int i = 0; i < call->n_in; i++)
        if (call->grad_in[i])
            sample_lanes_block(call->grad_in[i]);
    return CO_OK;
}

void sample_lanes_unpack(float *to, const co_tensor *tensor, int threads)
{
    const int64_t count = sample_lanes_count(tensor), step = count * lanes_choose()->lanes;

    CO_PARALLEL_FOR(threads)
    for (int64_t b = 0; b < sample_lanes_blocks(tensor); b++)
        lanes_choose()->unpack(to + b * step, (const float *)tensor->data + b * step,
                               layout_samples(tensor, b), count);
}
