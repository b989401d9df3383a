/*
 * linear_half.h - linear layers in bf16 as convolutions: what kernels with loops of their own
 * share.
 */
#ifndef CO_BACKENDS_CPU_LINEAR_HALF_H
#define CO_BACKENDS_CPU_LINEAR_HALF_H

#include "backends/cpu/direct_conv.h"

/* The self of these kernels. */
typedef struct linear_half {
    direct conv;
    co_conv2d_attr attr;
    co_call view; /* the layer as a convolution */
    co_tensor in, out, grad_in, grad_out;
    size_t out_at, grad_in_at; /* in scratch */
} linear_half;

co_status linear_half_plan_with(co_call *call, const direct_conv_loops *loops);
co_status linear_half_plan_backward(co_call *call);
co_status linear_half_forward(co_call *call, const co_run *run);
co_status linear_half_backward(co_call *call, const co_run *run);
void linear_half_fini(co_call *call);

#endif
