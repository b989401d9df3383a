/*
 * attention.h - loops for attention: one head of one sample at a time.
 *
 * Of a block of some queries the products with all keys are in memory at once, so that
 * memory grows with the length of the sequence, and not with its square.
 */
#ifndef CO_KERNELS_ATTENTION_H
#define CO_KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng.h"
#include "kernels/levels.h"

/* `length` positions, heads of `size` numbers. Rows of queries, keys and values begin `in` numbers
   after each other, those of results `out`. */
typedef struct attention_shape {
    int64_t length, size, in, out;
    float scale; /* of the products */
    bool causal, drops;
} attention_shape;

/* Where `drops`: in training a weight counts as 0 or `scale` times. Of one head of a sample, whose
   weights (length, length) have the words of `rng` from number `first` on. */
typedef struct attention_dropout {
    co_rng rng;
    uint64_t first;
    uint32_t below; /* dropped if the upper 24 bits of the word are less */
    float scale;
} attention_dropout;

/* Queries, keys and values of a head, or their gradients. */
typedef struct attention_head {
    float *q, *k, *v;
} attention_head;

/* Compiled once for each level of instructions. */
typedef struct attention_loops {
    /* Floats of room that both passes need. */
    size_t (*room)(const attention_shape *shape);
    /* norm (length): of each position the logarithm of the sum of exponentials, for backward.
       `dropout` counts where the shape says so, and may be NULL elsewhere. */
    void (*forward)(float *y, float *norm, const attention_head *x,
                    const attention_dropout *dropout, float *room, const attention_shape *shape);
    /* y of one query, the last of `seen` positions whose keys and values begin `shape->in` numbers
       after each other; shape->length positions at most. */
    void (*decode)(float *y, const attention_head *x, int64_t seen, float *room,
                   const attention_shape *shape);
    /* Floats of room for that. */
    size_t (*decode_room)(const attention_shape *shape);
    /* Writes dx->q; adds to dx->k and dx->v. */
    void (*backward)(const attention_head *dx, const attention_head *x, const float *y,
                     const float *dy, const float *norm, const attention_dropout *dropout,
                     float *room, const attention_shape *shape);
} attention_loops;

extern const attention_loops attention_loops_basic;
KERNELS_DECLARE(attention_loops, attention_loops);

#endif
