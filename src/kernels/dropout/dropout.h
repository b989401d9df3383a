/*
 * dropout.h - drop elements, or whole channels, of one sample: elements that lie in their order as
 * their random numbers are drawn; in any other layout that reorder.h has places for, with numbers
 * that have been.
 */
#ifndef CO_KERNELS_DROPOUT_H
#define CO_KERNELS_DROPOUT_H

#include <stdbool.h>

#include "core/rng.h"
#include "kernels/levels.h"
#include "kernels/reorder/reorder.h"

/* Compiled once for each level of instructions. */
typedef struct dropout_loops {
    /* y[e] = 0 where the upper 24 bits of word e are less than `below`, else x[e] * scale, for n
       elements. y may be x. */
    void (*rows)(float *y, const float *x, int64_t n, const co_rng *rng, uint32_t below,
                 float scale);
} dropout_loops;

extern const dropout_loops dropout_loops_basic;
KERNELS_DECLARE(dropout_loops, dropout_loops);

/* y = u < probability ? 0 : x / (1 - probability), where u is (C, plane), or (C) where whole
   channels are dropped. y may be x. What pads blocks of channels is left alone. */
void dropout_apply(float *y, const float *x, const reorder_places *places, const float *u,
                   double probability, bool channels);

#endif
