/*
 * loss.h - loops for losses that compare values: the squared and the absolute difference, and
 * binary cross-entropy of logits.
 */
#ifndef CO_KERNELS_LOSS_H
#define CO_KERNELS_LOSS_H

#include <stdint.h>

#include "kernels/levels.h"

/* Of n outputs x and targets t: the sum of the terms of a loss. */
typedef double (*loss_sum_fn)(const float *x, const float *t, int64_t n);
/* dx = scale times the slope of the term at x; dx may be x. */
typedef void (*loss_gradient_fn)(float *dx, const float *x, const float *t, double scale,
                                 int64_t n);

typedef struct loss_term {
    loss_sum_fn sum;
    loss_gradient_fn gradient;
} loss_term;

/* Compiled once for each instruction set. */
typedef struct loss_loops {
    loss_term squared;  /* (x - t)^2 */
    loss_term absolute; /* |x - t|, with slope 0 at x = t */
    loss_term binary;   /* max(x, 0) - t x + log(1 + exp(-|x|)) */
} loss_loops;

extern const loss_loops loss_loops_basic;
KERNELS_DECLARE(loss_loops, loss_loops);

#endif
