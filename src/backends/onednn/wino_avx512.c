/*
 * wino_avx512.c - the loops of wino.h for AVX-512 and tensors of floats; products are those of
 * BF16, too. Must not know calls, tensors or plans.
 */
#include "backends/onednn/wino_lines.h"

#define WINO_FLOATS true
#define WINO_TABLE  wino_loops_avx512
#define WINO_NAME   "winograd:avx512"
#define ROWS        14 /* of a product's tile: 28 sums and a line of weights in 32 registers */
#define STEP        8  /* input channels of a correlation's tile */

typedef float cell;

LANES_INLINE vec wino_take(__mmask16 bits, const cell *from)
{
    return (vec)_mm512_maskz_load_ps(bits, from);
}

LANES_INLINE void wino_put(cell *to, vec value)
{
    wino_store(to, value);
}

LANES_INLINE vec wino_weight(vec value)
{
    return value;
}

#include "backends/onednn/wino_images.h"

/* --- products --- */

/* m (columns, tiles, 16), `rows` tiles of it: 16 input channels of all tiles lie together, `line`
   floats apart; a column's weights `column` floats. */
LANES_INLINE void wino_product(float *m, const float *v, int64_t line, const float *u,
                               int64_t column, int64_t in_blocks, const int rows, const int columns)
{
    vec sum[ROWS][2];

    LANES_UNROLL for (int p = 0; p < rows; p++) LANES_UNROLL for (int q = 0; q < columns; q++)
        sum[p][q] = (vec){0};
    for (int64_t b = 0; b < in_blocks; b++, v += line, u += LANES * LANES) {
        LANES_UNROLL for (int p = 0; p < rows; p++) __builtin_prefetch(v + line + p * LANES);
        LANES_UNROLL_4 for (int i = 0; i < LANES; i++)
        {
            vec weight[2];

            LANES_UNROLL for (int q = 0; q < columns; q++)
            {
                weight[q] = wino_load(u + q * column + i * LANES);
            }
            LANES_UNROLL for (int p = 0; p < rows; p++)
            {
                const vec each = (vec){0} + v[p * LANES + i];

                LANES_UNROLL for (int q = 0; q < columns; q++) sum[p][q] += each * weight[q];
            }
        }
    }
    LANES_UNROLL for (int p = 0; p < rows; p++) LANES_UNROLL for (int q = 0; q < columns; q++)
        wino_store(m + q * line + p * LANES, sum[p][q]);
}

#define WINO_CASE(n)                                                                               \
    case n:                                                                                        \
        if (columns == 2)                                                                          \
            wino_product(m, v, line, u, column, in_blocks, n, 2);                                  \
        else                                                                                       \
            wino_product(m, v, line, u, column, in_blocks, n, 1);                                  \
        break;

/* The tile's size is a constant in each branch. */
static void wino_multiply_tile(float *m, const float *v, int64_t line, const float *u,
                               int64_t column, int64_t in_blocks, int rows, int columns)
{
    switch (rows) {
        WINO_CASE(1)
        WINO_CASE(2)
        WINO_CASE(3)
        WINO_CASE(4)
        WINO_CASE(5)
        WINO_CASE(6)
        WINO_CASE(7)
        WINO_CASE(8)
        WINO_CASE(9)
        WINO_CASE(10)
        WINO_CASE(11)
        WINO_CASE(12)
        WINO_CASE(13)
        WINO_CASE(14)
    default:
        break;
    }
}

void wino_multiply_avx512(float *m, const float *v, const float *u, int64_t tiles,
                          int64_t in_blocks, int64_t out_blocks)
{
    const int64_t line = tiles * LANES, column = in_blocks * LANES * LANES;
    const int64_t parts = (tiles + ROWS - 1) / ROWS;

    for (int64_t o = 0; o < out_blocks; o += 2)
        for (int64_t i = 0; i < parts; i++) {
            const int64_t first = tiles * i / parts, end = tiles * (i + 1) / parts;

            wino_multiply_tile(m + o * line + first * LANES, v + first * LANES, line,
                               u + o * column, column, in_blocks, (int)(end - first),
                               o + 1 < out_blocks ? 2 : 1);
        }
}

/* du (columns, rows, 16) over all tiles. */
LANES_INLINE void wino_correlation(float *du, int64_t column, const float *v, const float *dy,
                                   int64_t tiles, bool add, const int rows, const int columns)
{
    const int64_t line = tiles * LANES;
    vec sum[LANES][2];

    LANES_UNROLL for (int i = 0; i < rows; i++) LANES_UNROLL for (int q = 0; q < columns; q++)
        sum[i][q] = (vec){0};
    LANES_UNROLL_4 for (int64_t t = 0; t < tiles; t++, v += LANES, dy += LANES)
    {
        vec out[2];

        LANES_UNROLL for (int q = 0; q < columns; q++) out[q] = wino_load(dy + q * line);
        LANES_UNROLL for (int i = 0; i < rows; i++)
        {
            const vec each = (vec){0} + v[i];

            LANES_UNROLL for (int q = 0; q < columns; q++) sum[i][q] += each * out[q];
        }
    }
    LANES_UNROLL for (int i = 0; i < rows; i++) LANES_UNROLL for (int q = 0; q < columns; q++)
    {
        float *to = du + q * column + i * LANES;

        if (add)
            sum[i][q] += wino_load(to);
        wino_store(to, sum[i][q]);
    }
}

void wino_correlate_avx512(float *du, const float *v, const float *dy, int64_t tiles,
                           int64_t in_blocks, int64_t out_blocks, bool add)
{
    const int64_t line = tiles * LANES, column = in_blocks * LANES * LANES;

    for (int64_t o = 0; o < out_blocks; o += 2)
        for (int64_t b = 0; b < in_blocks; b++) {
            float *to = du + o * column + b * LANES * LANES;
            const float *x = v + b * line, *y = dy + o * line;

            for (int i = 0; o + 1 < out_blocks && i < LANES; i += STEP)
                wino_correlation(to + i * LANES, column, x + i, y, tiles, add, STEP, 2);
            if (o + 1 == out_blocks)
                wino_correlation(to, column, x, y, tiles, add, LANES, 1);
        }
}
