/*
 * attention_half.h - loops for attention in BF16 by tiles (kernels/gemm_half): one head of one
 * sample at a time. Products are added up in floats, exponentials are of floats; what is multiplied
 * is rounded.
 *
 * Of some queries the products with all keys are in memory at once, so that memory grows with the
 * length of the sequence, and not with its square.
 */
#ifndef CO_KERNELS_ATTENTION_HALF_H
#define CO_KERNELS_ATTENTION_HALF_H

#include <stddef.h>

#include "kernels/attention/attention.h"
#include "kernels/gemm_half/gemm_half.h"

/* Queries, keys and values of a head, or their gradients. */
typedef struct attention_half_head {
    uint16_t *q, *k, *v;
} attention_half_head;

/* What both passes of a head get. */
typedef struct attention_half_task {
    const attention_shape *shape; /* nothing is dropped */
    const gemm_half_loops *products;
    void *room;
} attention_half_task;

/* The backward pass of a head of queries. */
typedef struct attention_half_gradient {
    attention_half_head dx;
    const uint16_t *y, *dy;
    bool first, last; /* of those that share keys and values: dx.k and dx.v come with the last */
} attention_half_gradient;

typedef struct attention_half_loops {
    /* Bytes of room that both passes need. */
    size_t (*room)(const attention_shape *shape);
    /* norm (length): of each position the logarithm of the sum of exponentials, for backward. */
    void (*forward)(uint16_t *y, float *norm, const attention_half_head *x,
                    const attention_half_task *task);
    void (*backward)(const attention_half_gradient *to, const attention_half_head *x,
                     const float *norm, const attention_half_task *task);
} attention_half_loops;

#ifdef CO_KERNELS_X86
extern const attention_half_loops attention_half_loops_bf16;
#endif

#endif
