/*
 * softmax.h - loops for the logarithm of softmax over rows of logits, and for cross-entropy.
 */
#ifndef CO_KERNELS_SOFTMAX_H
#define CO_KERNELS_SOFTMAX_H

#include <stdint.h>

#include "kernels/levels.h"

/* log sum exp(x) = max + log(sum), for a row x whose largest element is max. */
typedef struct softmax_norm {
    float max, sum;
} softmax_norm;

/* Compiled once for each instruction set. One row of n; y may be x, and dx may be dy or x. */
typedef struct softmax_loops {
    /* y = x - log sum exp(x) */
    void (*log_softmax)(float *y, const float *x, int64_t n);
    /* dx = dy - exp(y) sum dy */
    void (*log_softmax_gradient)(float *dx, const float *y, const float *dy, int64_t n);
    softmax_norm (*norm)(const float *x, int64_t n);
    /* sum (max - x) */
    double (*below)(const float *x, float max, int64_t n);
    /* dx = scale exp(x - max) - shift */
    void (*entropy_gradient)(float *dx, const float *x, float max, float scale, float shift,
                             int64_t n);
} softmax_loops;

extern const softmax_loops softmax_loops_basic;
KERNELS_DECLARE(softmax_loops, softmax_loops);

/* The widest that this process may use. */
const softmax_loops *softmax_choose(void);

#endif
