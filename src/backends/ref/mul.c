/*
 * mul.c - product of two tensors, element by element.
 *
 *   y  = a b
 *
 *   da = dy b,  db = dy a
 */
#include "backends/ref/ref.h"

static void mul_run(const co_tensor *to, const co_tensor *from, const co_tensor *other)
{
    const int64_t count = to ? co_shape_count(&to->shape) : 0;
    const float *a = from->data, *b = other->data;
    float *y = ref_data(to);

    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] * b[i];
}

static co_status mul_forward(co_call *call, const co_run *run)
{
    (void)run;
    mul_run(call->out[0], call->in[0], call->in[1]);
    return CO_OK;
}

static co_status mul_backward(co_call *call, const co_run *run)
{
    (void)run;
    for (int i = 0; i < 2; i++)
        mul_run(call->grad_in[i], call->grad_out[0], call->in[1 - i]);
    return CO_OK;
}

const co_kernel co_ref_mul = {
    .op = "mul",
    .forward = mul_forward,
    .backward = mul_backward,
};
