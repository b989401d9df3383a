/*
 * cell.h - numbers of tensors as vectors of LANES floats: numbers that are floats or, in files that
 * define CELL_HALF, BF16. Those that define CELL_WIDENED as well multiply floats.
 */
#ifndef CO_KERNELS_CELL_H
#define CO_KERNELS_CELL_H

#ifdef CELL_HALF
#include "kernels/half16.h"

typedef uint16_t cell;

#define cell_load  half16_load
#define cell_store half16_store
#else
#include "kernels/simd.h"

typedef float cell;

#define cell_load  simd_load
#define cell_store simd_store
#endif

/* A word, a float or a pair of BF16, as the factor of a word in each lane. */
#if defined(CELL_HALF) && !defined(CELL_WIDENED)
typedef vec cell_factor;

#define cell_each half16_spread
#define cell_meet half16_dot
#define cell_read half16_dot_pair
#else
typedef float cell_factor;

SIMD_INLINE float cell_each(const float *x)
{
    return *x;
}

SIMD_INLINE vec cell_meet(vec sum, float x, vec w)
{
    return sum + x * w;
}

/* The same with the word at x; GCC keeps a float in a register nevertheless. */
SIMD_INLINE vec cell_read(vec sum, const float *x, vec w)
{
    return sum + *x * w;
}
#endif

#endif
