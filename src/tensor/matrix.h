/*
 * matrix.h - products of a tall or wide matrix with a few vectors: those of ext/vector.h.
 *
 * Sums are taken in an order that does not depend on the machine, so that all ranks get the same
 * bits.
 */
#ifndef CO_TENSOR_MATRIX_H
#define CO_TENSOR_MATRIX_H

#include <cohort/ext/vector.h>

#include "tensor/vector_inner.h"

void co_matrix_times(const co_vector_inner *inner, float *p, const float *m, const float *q,
                     const co_vector_matrix *shape);
void co_matrix_transposed_times(const co_vector_inner *inner, float *q, const float *m,
                                const float *p, const co_vector_matrix *shape);
void co_matrix_add_outer(const co_vector_inner *inner, float *m, float sign, const float *p,
                         const float *q, const co_vector_matrix *shape);
void co_matrix_orthonormalize(const co_vector_inner *inner, float *p,
                              const co_vector_matrix *shape);

#endif
