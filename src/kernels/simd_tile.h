/*
 * simd_tile.h - tiles of a product of matrices, whose sums stay in registers: rows of one or two
 * vectors. `rows` and `columns`, of vectors, are constants in each use. Included after LANES is
 * defined.
 */
#ifndef CO_KERNELS_SIMD_TILE_H
#define CO_KERNELS_SIMD_TILE_H

#include "kernels/simd.h"

typedef vec simd_tile_row[2]; /* one or two vectors of sums */

/* In memory rows follow each other, and columns are `column` floats apart. */
SIMD_INLINE void simd_tile_load(simd_tile_row *sum, const float *from, int64_t column,
                                const int rows, const int columns)
{
    SIMD_UNROLL(36) for (int p = 0; p < rows; p++) SIMD_UNROLL(36) for (int q = 0; q < columns; q++)
    {
        sum[p][q] = simd_load(from + q * column + p * LANES);
    }
}

SIMD_INLINE void simd_tile_clear(simd_tile_row *sum, const int rows, const int columns)
{
    SIMD_UNROLL(36) for (int p = 0; p < rows; p++) SIMD_UNROLL(36) for (int q = 0; q < columns; q++)
    {
        sum[p][q] = (vec){0};
    }
}

/* The sums there added to these. */
SIMD_INLINE void simd_tile_add_to(simd_tile_row *sum, const float *from, int64_t column,
                                  const int rows, const int columns)
{
    SIMD_UNROLL(36) for (int p = 0; p < rows; p++) SIMD_UNROLL(36) for (int q = 0; q < columns; q++)
    {
        sum[p][q] += simd_load(from + q * column + p * LANES);
    }
}

SIMD_INLINE void simd_tile_store(float *to, int64_t column, simd_tile_row *sum, const int rows,
                                 const int columns)
{
    SIMD_UNROLL(36) for (int p = 0; p < rows; p++) SIMD_UNROLL(36) for (int q = 0; q < columns; q++)
    {
        simd_store(to + q * column + p * LANES, sum[p][q]);
    }
}

/* One step of the product: a number for each row, `next` floats apart, times a vector for each
   column. */
SIMD_INLINE void simd_tile_add(simd_tile_row *sum, const float *number, int64_t next,
                               const float *with, int64_t column, const int rows, const int columns)
{
    vec factor[2];

    SIMD_UNROLL(36) for (int q = 0; q < columns; q++) factor[q] = simd_load(with + q * column);
    SIMD_UNROLL(36)
    for (int p = 0; p < rows; p++)
        simd_add_each(sum[p], number + p * next, factor, columns, p % 2 == 1);
}

/* `call(n)` for n of 1 to `most`: cases of a switch, so that n is a constant in each. */
#define SIMD_TILE_EACH(most, call)  SIMD_TILE_EACH_(most, call)
#define SIMD_TILE_EACH_(most, call) SIMD_TILE_EACH_##most(call)
#define SIMD_TILE_EACH_4(call)      call(1) call(2) call(3) call(4)
#define SIMD_TILE_EACH_6(call)      SIMD_TILE_EACH_4(call) call(5) call(6)
#define SIMD_TILE_EACH_8(call)      SIMD_TILE_EACH_6(call) call(7) call(8)
#define SIMD_TILE_EACH_14(call)                                                                    \
    SIMD_TILE_EACH_8(call) call(9) call(10) call(11) call(12) call(13) call(14)

#endif
