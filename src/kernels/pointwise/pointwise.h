/*
 * pointwise.h - loops over arrays of any layout: the positive part, and sums.
 */
#ifndef CO_KERNELS_POINTWISE_H
#define CO_KERNELS_POINTWISE_H

#include <stdint.h>

/* Compiled once for each instruction set. Arrays are the same, or do not overlap. */
typedef struct pointwise_loops {
    /* y = max(x, 0); a NaN stays one */
    void (*relu)(float *y, const float *x, int64_t n);
    /* dx = dy where y > 0, else 0 */
    void (*relu_gradient)(float *dx, const float *y, const float *dy, int64_t n);
    /* y = a + b */
    void (*add)(float *y, const float *a, const float *b, int64_t n);
} pointwise_loops;

extern const pointwise_loops pointwise_loops_basic;
#ifdef CO_KERNELS_X86
extern const pointwise_loops pointwise_loops_avx2, pointwise_loops_avx512;
#endif

/* The widest that this process may use. */
const pointwise_loops *pointwise_choose(void);

#endif
