/*
 * attention_half.h - attention in bf16: what kernels with loops of their own share.
 */
#ifndef CO_BACKENDS_CPU_ATTENTION_HALF_H
#define CO_BACKENDS_CPU_ATTENTION_HALF_H

#include "backends/cpu/attention.h"
#include "kernels/attention_half/attention_half.h"

/* The self of these kernels. */
typedef struct attention_half {
    const attention_half_loops *loops;
    const gemm_half_loops *products;
} attention_half;

bool attention_half_takes(const co_call *call, const char **why);
co_status attention_half_plan_with(co_call *call, const attention_half_loops *loops,
                                   const gemm_half_loops *products);
co_status attention_half_forward(co_call *call, const co_run *run);
co_status attention_half_backward(co_call *call, const co_run *run);

#endif
