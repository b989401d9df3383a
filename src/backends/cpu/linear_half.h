/*
 * linear_half.h - linear layers in bf16: what kernels with loops of their own share.
 */
#ifndef CO_BACKENDS_CPU_LINEAR_HALF_H
#define CO_BACKENDS_CPU_LINEAR_HALF_H

#include "backends/cpu/cpu.h"
#include "backends/cpu/product_half.h"

/* The self of these kernels. */
typedef struct linear_half {
    const gemm_half_loops *loops;
} linear_half;

co_status linear_half_plan_with(co_call *call, const gemm_half_loops *loops);
co_status linear_half_plan_backward(co_call *call);
co_status linear_half_forward(co_call *call, const co_run *run);
co_status linear_half_backward(co_call *call, const co_run *run);

#endif
