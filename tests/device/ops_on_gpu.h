/* ops_on_gpu.h - what tests of the operator table on a GPU share. */
#ifndef TESTS_DEVICE_OPS_ON_GPU_H
#define TESTS_DEVICE_OPS_ON_GPU_H

#include <cohort/ext/kernel.h>
#include <cohort/ext/vector.h>

/* Other orders of addition, and exp and log of a GPU. */
#define TOLERANCE 2e-5F
/* A value that is rounded to 16 bits the other way, further on. */
#define HALF_TOLERANCE 3e-2F

/* ---- the op by which test networks begin: y = x + value ---- */

static inline const co_vector_ops *vector_of(const co_call *call)
{
    return call->queue->device->ops->vector;
}

static inline co_status source_forward(co_call *call, const co_run *run)
{
    const size_t n = (size_t)co_shape_count(&call->in[0]->shape);

    (void)run;
    vector_of(call)->axpby(call->queue, call->out[0]->data, 1, call->in[0]->data, 1,
                           call->param[0].data, n);
    return CO_OK;
}

static inline co_status source_backward(co_call *call, const co_run *run)
{
    const size_t n = (size_t)co_shape_count(&call->in[0]->shape);
    const float *dy = call->grad_out[0]->data;
    float *grad = call->grad_param[0].data;

    if (run->accumulate)
        vector_of(call)->add(call->queue, grad, dy, n);
    else
        vector_of(call)->copy(call->queue, grad, dy, n);
    return CO_OK;
}

#endif
