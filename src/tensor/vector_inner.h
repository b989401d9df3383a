/*
 * vector_inner.h - loops that larger operations are made of (matrix.h, select.h): one set for each
 * level of instructions, all with the same bits.
 */
#ifndef CO_TENSOR_VECTOR_INNER_H
#define CO_TENSOR_VECTOR_INNER_H

#include <stddef.h>
#include <stdint.h>

#define CO_VECTOR_TERMS 4 /* maximum number of vectors for add_scaled and dot */
/* find_large may write this many words past the end of its result */
#define CO_VECTOR_MORE 16

typedef struct co_vector_inner {
    /* y[i] = (y[i] + a[0] x[0][i]) + a[1] x[1][i] ..., `terms` of them */
    void (*add_scaled)(float *y, const float *const *x, const float *a, int terms, size_t n);
    /* out[t] = sum of a[i] b[t][i], in 16 lanes that are added up in pairs */
    void (*dot)(float *out, const float *a, const float *const *b, int terms, size_t n);
    /* Positions, in order, of elements whose bits without the sign are at least `bound`; returns
       their number. Stops when there are more than `most`. `out`: (most + 1 + CO_VECTOR_MORE). */
    size_t (*find_large)(uint32_t *out, const float *x, size_t n, uint32_t bound, size_t most);
} co_vector_inner;

#endif
