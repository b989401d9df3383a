/*
 * softmax.h - loops for the logarithm of softmax over rows of logits.
 */
#ifndef CO_KERNELS_SOFTMAX_H
#define CO_KERNELS_SOFTMAX_H

#include <stdint.h>

#include "kernels/levels.h"

/* Compiled once for each instruction set. One row of n; y may be x, and dx may be dy. */
typedef struct softmax_loops {
    /* y = x - log sum exp(x) */
    void (*log_softmax)(float *y, const float *x, int64_t n);
    /* dx = dy - exp(y) sum dy */
    void (*log_softmax_gradient)(float *dx, const float *y, const float *dy, int64_t n);
} softmax_loops;

extern const softmax_loops softmax_loops_basic;
KERNELS_DECLARE(softmax_loops, softmax_loops);

/* The widest that this process may use. */
const softmax_loops *softmax_choose(void);

#endif
