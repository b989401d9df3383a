/*
 * matrix.h - products of a tall or wide matrix with a few vectors. Sums are taken in an order that
 * does not depend on the machine, so that ranks on different ones find the same.
 *
 * m is (rows, cols), row by row; p (rank, rows) and q (rank, cols) hold vectors one after another.
 */
#ifndef CO_STRATEGY_MATRIX_H
#define CO_STRATEGY_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#define CO_MATRIX_MAX_RANK 64

typedef struct co_matrix_shape {
    size_t rows, cols, rank;
} co_matrix_shape;

/* p = m q */
void co_matrix_times(float *p, const float *m, const float *q, const co_matrix_shape *shape);
/* q = m^T p */
void co_matrix_transposed_times(float *q, const float *m, const float *p,
                                const co_matrix_shape *shape);
/* m = p q^T, or m -= p q^T */
void co_matrix_outer(float *m, const float *p, const float *q, const co_matrix_shape *shape);
void co_matrix_subtract_outer(float *m, const float *p, const float *q,
                              const co_matrix_shape *shape);
/* The vectors of p made orthonormal, from the first on; one that the ones before it span becomes 0.
   Each becomes NaN where any was not finite. */
void co_matrix_orthonormalize(float *p, const co_matrix_shape *shape);

#endif
