/*
 * layernorm.h - loops that normalise rows, with their mean taken away first or not (rmsnorm), and
 * what goes back through them.
 */
#ifndef CO_KERNELS_LAYERNORM_H
#define CO_KERNELS_LAYERNORM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/levels.h"

/* Rows of n numbers each; `stats` (rows, 2) are the mean of a row and the reciprocal of its
   standard deviation; with `rms` 0, and the reciprocal of the root of its mean square. */
typedef struct layernorm_rows {
    int64_t rows, n;
    float eps;
    const float *weight; /* (n) */
    const float *bias;   /* (n), or NULL */
    bool rms;
} layernorm_rows;

/* Compiled once for each level of instructions. */
typedef struct layernorm_loops {
    void (*forward)(float *y, float *stats, const float *x, const layernorm_rows *size);
    /* `sums` (2, n) += the gradients of weight and bias. dx NULL: not needed. */
    void (*backward)(float *dx, float *sums, const float *x, const float *dy, const float *stats,
                     const layernorm_rows *size);
} layernorm_loops;

extern const layernorm_loops layernorm_loops_basic;
KERNELS_DECLARE(layernorm_loops, layernorm_loops);

#endif
