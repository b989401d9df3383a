/*
 * add.c - sum of two tensors.
 *
 *   y = a + b
 *
 *   da = dy,  db = dy
 */
#include "backends/ref/ref.h"

static co_status add_forward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const float *a = call->in[0]->data, *b = call->in[1]->data;
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
    return CO_OK;
}

const co_kernel co_ref_add = {
    .op = "add",
    .forward = add_forward,
    .backward = co_copy_backward,
    .in_place = true,
};
