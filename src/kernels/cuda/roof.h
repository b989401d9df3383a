/* roof.h - what the kernels of roof.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_ROOF_H
#define CO_KERNELS_CUDA_ROOF_H

#include <stddef.h>
#include <stdint.h>

/* A GPU moves so many bytes of a thread at once. */
typedef struct __attribute__((aligned(16))) cuda_four {
    float x[4];
} cuda_four;

/* Words that are numbers of moderate size, whether they are read as fp32, bf16 or fp16. */
typedef struct cuda_roof_draw {
    uint32_t *word; /* (n) */
    size_t n;
} cuda_roof_draw;

/* a = b + s c */
typedef struct cuda_roof_triad {
    cuda_four *a;
    const cuda_four *b, *c; /* (n) */
    size_t n;
    float s;
} cuda_roof_triad;

#define CUDA_ROOF_CHAINS 8 /* multiply-adds that do not wait for each other */

/* `rounds` multiply-adds in each chain of each thread. */
typedef struct cuda_roof_multiply_add {
    float *inout; /* (threads) */
    float factor, summand;
    uint32_t rounds;
} cuda_roof_multiply_add;

#endif
