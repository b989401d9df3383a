/* pointwise.h - what the kernels of pointwise.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_POINTWISE_H
#define CO_KERNELS_CUDA_POINTWISE_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/ext/step.h>

#include "kernels/cuda/number.h"

/* Of `type`, in any layout. Backward: `x` is the gradient of the output, and `y` the input or the
   output that was saved. */
typedef struct cuda_pointwise {
    void *out;         /* (n) */
    const void *x, *y; /* (n); y NULL: there is none */
    size_t n;
    double factor;
    cuda_number type;
    bool tanh; /* of gelu */
} cuda_pointwise;

/* (rows, count): one random number for `span` neighbours of a row in the plain layout. */
typedef struct cuda_dropout {
    void *out;
    const void *x;
    const co_step_values *values;
    const uint32_t *sample; /* (rows) */
    uint64_t seed;
    double p;
    uint32_t stream, rows, count, span;
    uint32_t channels; /* channels come last, so many; 0: the plain layout */
    cuda_number type;
    float scale;
} cuda_dropout;

typedef struct cuda_convert {
    void *out;
    const void *x;
    size_t n;
    cuda_number from, to;
} cuda_convert;

#endif
