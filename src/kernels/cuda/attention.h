/* attention.h - what the kernels of attention.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_ATTENTION_H
#define CO_KERNELS_CUDA_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include <cohort/ext/step.h>

/* Positions in a tile, whose pairs are a block's threads; numbers of a head at most. */
#define CUDA_ATTENTION_TILE 16
#define CUDA_ATTENTION_SIZE 128
/* On tensor cores: positions that a block has, and numbers of which a head has a multiple. */
#define CUDA_ATTENTION_OWN  128
#define CUDA_ATTENTION_UNIT 8

/* Sequences (n, length, (heads + 2 kv_heads) size) and (n, length, heads size), of floats, or on
   tensor cores of 16-bit numbers. */
typedef struct cuda_attention {
    void *out;          /* y, or dx */
    const void *x;      /* queries of all heads, keys, values */
    const void *y, *dy; /* of backward */
    float *norm;        /* (n, heads, length): the logarithm of what softmax divides by */
    float *mean;        /* (n, heads, length): of dp, weighted by p; of backward */
    uint32_t n, length, heads, kv_heads, size;
    bool causal;
    float scale;    /* 1 / sqrt(size) */
    double dropout; /* probability; 0: no weight is dropped, and what follows is not read */
    const co_step_values *values;
    const uint32_t *sample; /* (n) */
    uint64_t seed;
    uint32_t stream;
    float kept; /* 1 / (1 - dropout) */
} cuda_attention;

#endif
