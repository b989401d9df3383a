/*
 * linear.h - the backward pass of a linear layer by the loops of kernels/gemm, for other kernels of
 * the op: oneDNN converts the weights to blocks, and their gradients back, at every step.
 */
#ifndef CO_BACKENDS_CPU_LINEAR_H
#define CO_BACKENDS_CPU_LINEAR_H

#include <cohort/ext/kernel.h>

#include "kernels/gemm/gemm.h"

/* A part of a kernel's self. */
typedef struct gemm {
    const gemm_loops *loops;
    int threads; /* that there is room for */
} gemm;

/* Operands of the backward pass: rows of the input and of the output's gradient. */
typedef struct gemm_backward_from {
    const float *x, *dy;
} gemm_backward_from;

/* Find loops for the call that this machine can run. If there are none, loops is NULL, and the
   result false. */
bool gemm_choose(gemm *self, const co_call *call);
/* Of the room for the backward pass. */
size_t gemm_backward_bytes(const gemm *self, const co_call *call);
void gemm_backward(const gemm *self, const co_call *call, const gemm_backward_from *in, void *room,
                   bool accumulate);

#endif
