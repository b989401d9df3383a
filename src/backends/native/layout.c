/*
 * layout.c - the layout of this backend: which lanes, how large, in and out.
 */
#include <string.h>

#include "backends/native/native.h"

int64_t native_count(const co_tensor *tensor)
{
    return co_shape_count(&tensor->shape) / tensor->shape.dim[0];
}

int64_t native_blocks(const co_tensor *tensor)
{
    const int64_t lanes = lanes_choose()->lanes;

    return (tensor->shape.dim[0] + lanes - 1) / lanes;
}

size_t native_bytes(const co_tensor *tensor)
{
    return (size_t)(native_blocks(tensor) * native_count(tensor) * lanes_choose()->lanes) *
           sizeof(float);
}

bool native_is_blocked(const co_tensor *tensor)
{
    return tensor->layout.format == CO_FORMAT_SAMPLE_LANES;
}

void native_block(co_tensor *tensor)
{
    tensor->layout = (co_layout){.format = CO_FORMAT_SAMPLE_LANES, .block = lanes_choose()->lanes};
    tensor->bytes = native_bytes(tensor);
}

bool native_supports_blocked(const co_call *call, const char **why)
{
    *why = "its input does not lie in this backend's layout";
    for (int i = 0; i < call->n_in; i++)
        if (!native_is_blocked(call->in[i]))
            return false;
    return true;
}

size_t native_room(const co_tensor *tensor)
{
    return native_is_blocked(tensor) ? 0 : native_bytes(tensor);
}

const float *native_read(const co_tensor *tensor, float *room)
{
    if (native_is_blocked(tensor))
        return tensor->data;
    lanes_choose()->pack(room, tensor->data, tensor->shape.dim[0], native_count(tensor));
    return room;
}

const float *native_grad_out(const co_call *call)
{
    return native_read(call->grad_out[0], call->scratch);
}

void native_clear_rest(const co_tensor *tensor)
{
    const int64_t lanes = lanes_choose()->lanes, rest = tensor->shape.dim[0] % lanes;
    const int64_t count = native_count(tensor);
    float *last = (float *)tensor->data + (native_blocks(tensor) - 1) * count * lanes;

    for (int64_t e = 0; rest && e < count; e++)
        memset(last + e * lanes + rest, 0, (size_t)(lanes - rest) * sizeof(float));
}

co_status native_plan_alike(co_call *call)
{
    native_block(call->out[0]);
    return CO_OK;
}

co_status native_plan_backward_alike(co_call *call)
{
    const size_t room = native_room(call->grad_out[0]);

    if (room > call->scratch_bytes)
        call->scratch_bytes = room;
    for (int i = 0; i < call->n_in; i++)
        if (call->grad_in[i])
            native_block(call->grad_in[i]);
    return CO_OK;
}

static co_status layout_unpack(co_call *call, const co_run *run)
{
    const co_tensor *in = call->in[0];

    (void)run;
    lanes_choose()->unpack(call->out[0]->data, in->data, in->shape.dim[0], native_count(in));
    return CO_OK;
}

const co_kernel co_native_unpack = {
    .op = "unpack",
    .reads = CO_READS(CO_FORMAT_SAMPLE_LANES),
    .forward = layout_unpack,
};
