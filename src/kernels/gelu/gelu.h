/*
 * gelu.h - loops for the Gaussian error linear unit, exact and by the hyperbolic tangent (ops.h).
 */
#ifndef CO_KERNELS_GELU_H
#define CO_KERNELS_GELU_H

#include <stdint.h>

#include "kernels/levels.h"

/* Compiled once for each level of instructions. */
typedef struct gelu_loops {
    /* y = gelu(x), of floats; those of gelu_loops_bf16 are of BF16 */
    void (*exact)(void *y, const void *x, int64_t n);
    void (*tanh)(void *y, const void *x, int64_t n);
    /* dx = dy * its slope at x; dx may be dy */
    void (*exact_gradient)(void *dx, const void *x, const void *dy, int64_t n);
    void (*tanh_gradient)(void *dx, const void *x, const void *dy, int64_t n);
} gelu_loops;

extern const gelu_loops gelu_loops_basic;
KERNELS_DECLARE(gelu_loops, gelu_loops);
#ifdef CO_KERNELS_X86
extern const gelu_loops gelu_loops_bf16;
#endif

#endif
