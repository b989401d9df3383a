/*
 * linear.h - the backward pass of a linear layer with the loops of kernels/gemm, also for oneDNN's
 * kernel, which would convert the weights to blocks and their gradients back in every step.
 */
#ifndef CO_BACKENDS_CPU_LINEAR_H
#define CO_BACKENDS_CPU_LINEAR_H

#include <cohort/ext/kernel.h>

#include "kernels/gemm/gemm.h"

/* Embedded in a kernel's self. */
typedef struct gemm {
    const gemm_loops *loops;
    int threads; /* that scratch was reserved for */
} gemm;

/* Row-major input and gradient of the output. */
typedef struct gemm_backward_from {
    const float *x, *dy;
} gemm_backward_from;

/* Choose loops that this CPU can run. If there are none, loops is NULL and the result false. */
bool gemm_choose(gemm *self, const co_call *call);
/* Of the room for the backward pass. */
size_t gemm_backward_bytes(const gemm *self, co_call *call);
void gemm_backward(const gemm *self, const co_call *call, const gemm_backward_from *in, void *room,
                   bool accumulate);

/* --- linear_rules.c --- */
/* Whether a layer in floats is faster with these loops than with oneDNN's kernels; a sample is a
   row of the input. */
bool linear_suits(int64_t samples, int64_t in, int64_t out, const char **why);
/* Whether it is faster still as products in blocks (linear_sequences.c). */
bool linear_suits_blocks(int64_t samples, int64_t in, int64_t out);

#endif
