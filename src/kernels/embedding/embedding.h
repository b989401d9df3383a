/* embedding.h - rows of a table by number: taken, and their gradients added up. */
#ifndef CO_KERNELS_EMBEDDING_H
#define CO_KERNELS_EMBEDDING_H

#include <stddef.h>
#include <stdint.h>

/* y (n, size): row token[i] of w (.., size) for each i. */
void embedding_take(float *y, const float *w, const int32_t *token, size_t n, size_t size);

/* dw (.., size) += dy (n, size), to row token[i] for i in order, in columns begin to end - 1. */
void embedding_add(float *dw, const float *dy, const int32_t *token, size_t n, size_t size,
                   size_t begin, size_t end);

/* y = x + w, each (n). y may be x. */
void embedding_shift(float *y, const float *x, const float *w, size_t n);

/* to (n) = the sum of `rows` rows of `from`, `step` floats from one to the next, in order; or
   to += it. */
void embedding_sum(float *to, const float *from, size_t rows, size_t step, size_t n, int add);

#endif
