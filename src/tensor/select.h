/* select.h - the k largest of n numbers by size, without sorting them: top_k of ext/vector.h. */
#ifndef CO_TENSOR_SELECT_H
#define CO_TENSOR_SELECT_H

#include "tensor/vector_inner.h"

/* Candidates that co_select_largest may hold while it searches. */
size_t co_select_room(size_t k);

void co_select_largest(const co_vector_inner *inner, uint32_t *index, uint32_t *room,
                       const float *x, size_t n, size_t k);

#endif
