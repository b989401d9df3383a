/*
 * product.h - a product of matrices of floats of any size, c (+)= a b + bias, by the loops of
 * kernels/gemm: both factors are packed in blocks that stay in caches (Goto & van de Geijn,
 * "Anatomy of high-performance matrix multiplication", 2008).
 *
 * Every sum is taken by one thread, in an order that the size alone decides.
 */
#ifndef CO_BACKENDS_CPU_PRODUCT_H
#define CO_BACKENDS_CPU_PRODUCT_H

#include <stddef.h>

#include "kernels/gemm/gemm.h"

/* The rows of a, or the columns of b: n of them, which are rows of `at`, or columns. */
typedef struct product_side {
    const float *at;
    int64_t n, step; /* elements from a row of `at` to the next */
    bool columns;
} product_side;

typedef struct product {
    const gemm_loops *loops;
    int threads;
    float *c; /* (a.n, b.n), whole rows after each other */
    product_side a, b;
    int64_t k; /* elements of each sum */
    bool add;
    const float *bias; /* of each column of c, NULL: none; not with `add` */
    float *sums;       /* of the elements of each row of a, which are columns; NULL: not wanted */
    bool add_sums;
} product;

/* Bytes of room for a product of that size, shared and of each thread. */
size_t product_room_bytes(const gemm_loops *loops, int64_t n, int64_t k);
size_t product_own_bytes(const gemm_loops *loops, int64_t k);
/* `own`: room of thread 0, `own_step` bytes before that of the next. */
void product_run(const product *p, void *room, void *own, size_t own_step);

#endif
