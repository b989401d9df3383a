/*
 * product_half.h - a product of matrices of any size in BF16, c (+)= a b + bias, by the loops of
 * kernels/gemm_half: both factors are packed in blocks that stay in caches.
 *
 * Every sum is taken by one thread, in an order that the size alone decides.
 */
#ifndef CO_BACKENDS_CPU_PRODUCT_HALF_H
#define CO_BACKENDS_CPU_PRODUCT_HALF_H

#include <stddef.h>

#include "kernels/gemm_half/gemm_half.h"

/* The rows of a, or the columns of b: n of them, which are rows of `at`, or columns. a is of BF16;
   rows of b are of floats, columns are of floats or BF16. */
typedef struct product_half_side {
    const void *at;
    int64_t n, step; /* elements from a row of `at` to the next */
    bool columns, floats;
} product_half_side;

typedef struct product_half {
    const gemm_half_loops *loops;
    int threads;
    void *c; /* (a.n, b.n), whole rows after each other */
    product_half_side a, b;
    int64_t k;         /* elements of each sum */
    bool half;         /* c is of BF16; else floats, */
    bool add;          /* added to what is there */
    const float *bias; /* of each column of c, NULL: none; not with `add` */
    float *sums;       /* of the elements of each row of a, which are columns; NULL: not wanted */
    bool add_sums;
} product_half;

/* The loops that this CPU runs fastest; it has AVX-512 with BF16. */
const gemm_half_loops *product_half_choose(void);
/* Bytes of room for a product, shared and of each thread; of p the loops, the sizes and `half`
   count. */
size_t product_half_room_bytes(const product_half *p);
size_t product_half_own_bytes(const product_half *p);
/* `own`: room of thread 0, `own_step` bytes before that of the next. */
void product_half_run(const product_half *p, void *room, void *own, size_t own_step);

#endif
