/* pointwise.h - what the kernels of pointwise.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_POINTWISE_H
#define CO_KERNELS_CUDA_POINTWISE_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/ext/step.h>

/* Backward: `x` is the gradient of the output, and `y` the input or the output that was saved. */
typedef struct cuda_pointwise {
    float *out;         /* (n) */
    const float *x, *y; /* (n) */
    size_t n;
    double factor;
    bool tanh; /* of gelu */
} cuda_pointwise;

/* (rows, count): one random number for `span` neighbours of a row. */
typedef struct cuda_dropout {
    float *out;
    const float *x;
    const co_step_values *values;
    const uint32_t *sample; /* (rows) */
    uint64_t seed;
    double p;
    uint32_t stream, rows, count, span;
    float scale;
} cuda_dropout;

/* Of 16 bits: the gradient of the form with tanh; `x` is its input. */
typedef struct cuda_gelu {
    uint16_t *out;          /* (n) */
    const uint16_t *dy, *x; /* (n) */
    size_t n;
    bool f16; /* else BF16 */
} cuda_gelu;

/* One of `narrow` and `half` is not NULL: where 16 bits are written, or read. */
typedef struct cuda_convert {
    float *out;
    const float *x;
    uint16_t *narrow;
    const uint16_t *half;
    size_t n;
    bool f16; /* else BF16 */
} cuda_convert;

#endif
