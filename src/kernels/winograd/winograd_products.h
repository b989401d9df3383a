/*
 * winograd_products.h - the matrix products of winograd.h, for LANES lanes, in fp32.
 * Independent of calls, tensors and plans.
 */
#include "kernels/simd_tile.h"
#include "kernels/winograd/winograd_lines.h"

/* Tiles of a product: with two vectors of outputs each they and a row of weights fit into the
   registers. Input channels of a tile of `correlate`: of a block, and blocks. */
#if LANES == 16
#define WINOGRAD_ROWS   14
#define WINOGRAD_STEP   8
#define WINOGRAD_BLOCKS 1
#elif LANES == 8
#define WINOGRAD_ROWS   6
#define WINOGRAD_STEP   4
#define WINOGRAD_BLOCKS 1
#else
#define WINOGRAD_ROWS   14
#define WINOGRAD_STEP   4
#define WINOGRAD_BLOCKS 3
#endif

/* m (columns, tiles, LANES), `rows` tiles of it: a block of input channels of all tiles is
   contiguous, blocks are `line` floats apart; the weights of a column are `column` floats apart. */
SIMD_INLINE void winograd_product(float *m, const float *v, int64_t line, const float *u,
                                  int64_t column, int64_t in_blocks, bool add, const int rows,
                                  const int columns)
{
    simd_tile_row sum[WINOGRAD_ROWS];

    if (add)
        simd_tile_load(sum, m, line, rows, columns);
    else
        simd_tile_clear(sum, rows, columns);
    for (int64_t b = 0; b < in_blocks; b++, v += line, u += LANES * LANES) {
        SIMD_UNROLL(36) for (int p = 0; p < rows; p++) __builtin_prefetch(v + line + p * LANES);
        SIMD_UNROLL_BY(4)
        for (int i = 0; i < LANES; i++)
            simd_tile_add(sum, v + i, LANES, u + i * LANES, column, rows, columns);
    }
    simd_tile_store(m, line, sum, rows, columns);
}

#define WINOGRAD_CASE(n)                                                                           \
    case n:                                                                                        \
        if (columns == 2)                                                                          \
            winograd_product(m, v, line, u, column, in_blocks, add, n, 2);                         \
        else                                                                                       \
            winograd_product(m, v, line, u, column, in_blocks, add, n, 1);                         \
        break;

/* The tile's size is a constant in each branch. */
static void winograd_multiply_tile(float *m, const float *v, int64_t line, const float *u,
                                   int64_t column, int64_t in_blocks, bool add, int rows,
                                   int columns)
{
    switch (rows) {
        SIMD_TILE_EACH(WINOGRAD_ROWS, WINOGRAD_CASE)
    default:
        break;
    }
}

static void winograd_multiply(float *m, const float *v, const float *u, int64_t tiles,
                              int64_t in_blocks, int64_t out_blocks, bool add)
{
    const int64_t line = tiles * LANES, column = in_blocks * LANES * LANES;
    const int64_t parts = (tiles + WINOGRAD_ROWS - 1) / WINOGRAD_ROWS;

    for (int64_t o = 0; o < out_blocks; o += 2)
        for (int64_t i = 0; i < parts; i++) {
            const int64_t first = tiles * i / parts, end = tiles * (i + 1) / parts;

            winograd_multiply_tile(m + o * line + first * LANES, v + first * LANES, line,
                                   u + o * column, column, in_blocks, add, (int)(end - first),
                                   o + 1 < out_blocks ? 2 : 1);
        }
}

/* du (columns, blocks, LANES, LANES) over all tiles: `rows` channels of each block of inputs. */
SIMD_INLINE void winograd_correlation(float *du, int64_t column, const float *v, const float *dy,
                                      int64_t tiles, bool add, const int blocks, const int rows,
                                      const int columns)
{
    const int64_t line = tiles * LANES;
    simd_tile_row sum[WINOGRAD_BLOCKS * LANES];

    simd_tile_clear(sum, blocks * rows, columns);
    SIMD_UNROLL_BY(4)
    for (int64_t t = 0; t < tiles; t++, v += LANES, dy += LANES) {
        SIMD_UNROLL(36)
        for (int b = 0; b < blocks; b++)
            simd_tile_add(sum + b * rows, v + b * line, 1, dy, line, rows, columns);
    }
    SIMD_UNROLL(36) for (int b = 0; b < blocks; b++)
    {
        simd_tile_row *part = sum + b * rows;
        float *to = du + (int64_t)b * LANES * LANES;

        if (add)
            simd_tile_add_to(part, to, column, rows, columns);
        simd_tile_store(to, column, part, rows, columns);
    }
}

/* All channels of `blocks` blocks of inputs, and two of outputs. */
SIMD_INLINE void winograd_correlate_pair(float *du, int64_t column, const float *v, const float *dy,
                                         int64_t tiles, bool add, const int blocks)
{
    for (int i = 0; i < LANES; i += WINOGRAD_STEP)
        winograd_correlation(du + i * LANES, column, v + i, dy, tiles, add, blocks, WINOGRAD_STEP,
                             2);
}

static void winograd_correlate(float *du, const float *v, const float *dy, int64_t tiles,
                               int64_t in_blocks, int64_t out_blocks, bool add)
{
    const int64_t line = tiles * LANES, column = in_blocks * LANES * LANES;

    for (int64_t o = 0; o < out_blocks; o += 2)
        for (int64_t b = 0; b < in_blocks;) {
            float *to = du + o * column + b * LANES * LANES;
            const float *x = v + b * line, *y = dy + o * line;

            if (o + 1 == out_blocks) {
                winograd_correlation(to, column, x, y, tiles, add, 1, LANES, 1);
                b++;
            } else if (b + WINOGRAD_BLOCKS <= in_blocks) {
                winograd_correlate_pair(to, column, x, y, tiles, add, WINOGRAD_BLOCKS);
                b += WINOGRAD_BLOCKS;
            } else {
                winograd_correlate_pair(to, column, x, y, tiles, add, 1);
                b++;
            }
        }
}
