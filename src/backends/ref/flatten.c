/*
 * flatten.c - each sample as one row.
 *
 * In the plain layout the bytes stay as they are, so this is a copy, or nothing at all where the
 * plan places the output over the input.
 */
#include <string.h>

#include "backends/ref/ref.h"

static void flatten_copy(const co_tensor *to, const co_tensor *from)
{
    if (to && to->data != from->data)
        memcpy(to->data, from->data, from->bytes);
}

static co_status flatten_forward(co_call *call, const co_run *run)
{
    (void)run;
    flatten_copy(call->out[0], call->in[0]);
    return CO_OK;
}

static co_status flatten_backward(co_call *call, const co_run *run)
{
    (void)run;
    flatten_copy(call->grad_in[0], call->grad_out[0]);
    return CO_OK;
}

const co_kernel co_ref_flatten = {
    .op = "flatten",
    .forward = flatten_forward,
    .backward = flatten_backward,
    .in_place = true,
};
