/*
 * rotary.h - loops that rotate the pairs (x[i], x[i + half]) of a head.
 */
#ifndef CO_KERNELS_ROTARY_H
#define CO_KERNELS_ROTARY_H

#include <stdint.h>

#include "kernels/levels.h"

/* Compiled once for each level of instructions. */
typedef struct rotary_loops {
    /* y = x rotated, for `heads` of 2 half numbers each, one after the other, all by the angles
       whose cosines and sines are given (half each); backwards with `sign` -1. y may be x. */
    void (*rotate)(float *y, const float *x, const float *cosine, const float *sine, float sign,
                   int64_t heads, int64_t half);
} rotary_loops;

extern const rotary_loops rotary_loops_basic;
KERNELS_DECLARE(rotary_loops, rotary_loops);

#endif
