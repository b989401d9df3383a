/*
 * pointwise.h - loops over arrays of any layout: the positive part, the hyperbolic tangent,
 * multiples and sums.
 */
#ifndef CO_KERNELS_POINTWISE_H
#define CO_KERNELS_POINTWISE_H

#include <stdint.h>

#include "kernels/levels.h"

/* Compiled once for each instruction set and type of numbers. Arrays are the same, or do not
 * overlap. */
typedef struct pointwise_loops {
    /* y = max(x, 0); a NaN stays one */
    void (*relu)(void *y, const void *x, int64_t n);
    /* dx = dy where y > 0, else 0; y is a result of `relu` */
    void (*relu_gradient)(void *dx, const void *y, const void *dy, int64_t n);
    /* y = tanh(x) */
    void (*tanh)(void *y, const void *x, int64_t n);
    /* dx = dy (1 - y^2) */
    void (*tanh_gradient)(void *dx, const void *y, const void *dy, int64_t n);
    /* y = a + b */
    void (*add)(void *y, const void *a, const void *b, int64_t n);
    /* y = factor x */
    void (*scale)(void *y, const void *x, double factor, int64_t n);
} pointwise_loops;

extern const pointwise_loops pointwise_loops_basic;
KERNELS_DECLARE(pointwise_loops, pointwise_loops);
#ifdef CO_KERNELS_X86
extern const pointwise_loops pointwise_loops_bf16;
#endif

/* The widest that this process may use for floats. */
const pointwise_loops *pointwise_choose(void);

#endif
