/*
 * gate.h - loops of gated layers: the sigmoid linear unit, and products element by element.
 */
#ifndef CO_KERNELS_GATE_H
#define CO_KERNELS_GATE_H

#include <stdint.h>

#include "kernels/levels.h"

/* Compiled once for each level of instructions. Arrays of floats are the same, or do not overlap.
 */
typedef struct gate_loops {
    /* y = x / (1 + exp(-x)) */
    void (*silu)(void *y, const void *x, int64_t n);
    /* dx = dy * its slope at x */
    void (*silu_gradient)(void *dx, const void *x, const void *dy, int64_t n);
    /* y = a b */
    void (*mul)(float *y, const float *a, const float *b, int64_t n);
} gate_loops;

extern const gate_loops gate_loops_basic;
KERNELS_DECLARE(gate_loops, gate_loops);

#endif
