/*
 * linear_amx.h - linear layers in bf16 by tiles: what kernels with loops of their own share.
 */
#ifndef CO_BACKENDS_CPU_LINEAR_AMX_H
#define CO_BACKENDS_CPU_LINEAR_AMX_H

#include "backends/cpu/cpu.h"
#include "backends/cpu/product_half.h"

/* The self of these kernels. */
typedef struct linear_amx {
    const gemm_half_loops *loops;
} linear_amx;

co_status linear_amx_plan_with(co_call *call, const gemm_half_loops *loops);
co_status linear_amx_plan_backward(co_call *call);
co_status linear_amx_forward(co_call *call, const co_run *run);
co_status linear_amx_backward(co_call *call, const co_run *run);

#endif
