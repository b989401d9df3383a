/* block_sums.h - what the threads of a block make of their values together, in one order. */
#ifndef CO_KERNELS_CUDA_BLOCK_SUMS_H
#define CO_KERNELS_CUDA_BLOCK_SUMS_H

#include "kernels/cuda/grid.h"

/* Of a whole block: each run of `lanes` values of `tile` (CUDA_BLOCK), SHARED, has its sum in the
   first. A power of 2. */
INLINE void block_sum(float *tile, uint32_t lanes)
{
    for (uint32_t half = lanes / 2; half > 0; half /= 2)
        PHASE
            if (THREAD % lanes < half)
                tile[THREAD] += tile[THREAD + half];
}

/* The same for the largest; a NaN does not count. */
INLINE void block_max(float *tile, uint32_t lanes)
{
    for (uint32_t half = lanes / 2; half > 0; half /= 2)
        PHASE
            if (THREAD % lanes < half)
                tile[THREAD] = fmaxf(tile[THREAD], tile[THREAD + half]);
}

/* Of a whole block: two sums of values that are `apart` from each other, in the first `apart`. */
INLINE void block_sum_pairs(double *a, double *b, uint32_t apart)
{
    for (uint32_t half = CUDA_BLOCK / 2; half >= apart; half /= 2)
        PHASE
            if (THREAD < half) {
                a[THREAD] += a[THREAD + half];
                b[THREAD] += b[THREAD + half];
            }
}

#endif
