/* embedding.h - what the kernels of embedding.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_EMBEDDING_H
#define CO_KERNELS_CUDA_EMBEDDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows (tokens, size) of a weight (vocab, size). */
typedef struct cuda_embedding {
    float *out;     /* (tokens, size), or the gradient of the weight */
    const float *x; /* the weight, or the gradient of its rows */
    const int32_t *token;
    uint32_t tokens, vocab, size;
    bool accumulate;
} cuda_embedding;

/* x (n, count) + weight (rows), of which the first `count` are used. */
typedef struct cuda_positions {
    float *out; /* (n, count), or the gradient of the weight */
    const float *x, *weight;
    uint32_t n, count, rows;
    bool accumulate;
} cuda_positions;

#endif
