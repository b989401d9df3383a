/*
 * phase_conv_impl.h - the loops of phase_conv.h for LANES lanes. Included once for each instruction
 * set, by a file that defines LANES, PHASE_CONV_TABLE and PHASE_CONV_NAME, and what fits into the
 * registers:
 *
 *   PHASE_CONV_ROWS    tiles of a product, times two vectors of results
 *   PHASE_CONV_STEP    inputs of a gradient, times two vectors
 *
 * For tensors of BF16 that file defines CELL_HALF, too. Sums are in floats.
 * Independent of calls, tensors and plans.
 */
#include <string.h>

#include "kernels/cell.h"
#include "kernels/phase_conv/phase_conv.h"
#include "kernels/simd_tile.h"
#include "kernels/simd_winograd.h"

#define PHASE_CONV_MOST_POINTS (PHASE_CONV_MOST_TAPS + PHASE_CONV_TILE - 1)
#define PHASE_CONV_UNROLL      SIMD_UNROLL(8)

SIMD_INLINE int64_t phase_conv_vectors(int64_t depth)
{
    return (depth + LANES - 1) / LANES;
}

SIMD_INLINE int64_t phase_conv_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Runs `call` with r as a constant. */
#define PHASE_CONV_FOR_TAPS(taps, call)                                                            \
    do {                                                                                           \
        if ((taps) == 3) {                                                                         \
            enum { r = 3 };                                                                        \
            call;                                                                                  \
        } else {                                                                                   \
            enum { r = 4 };                                                                        \
            call;                                                                                  \
        }                                                                                          \
    } while (0)

/* --- images --- */

/* `pixels` times `stride` floats in a row, each to its own pixel; the stride is a constant where it
   is common. */
SIMD_INLINE void phase_conv_split_row(float *to, int64_t pixel, const float *from, int64_t pixels,
                                      const int64_t stride)
{
    for (int64_t t = 0; t < pixels; t++)
        memcpy(to + t * pixel, from + t * stride, (size_t)stride * sizeof(float));
}

static void phase_conv_split(float *to, const float *planes, const phase_conv_row *row)
{
    const int64_t s = row->stride, pixels = PHASE_CONV_TILE * row->columns + row->taps - 1;
    const int64_t pixel = phase_conv_vectors(row->depth) * LANES;

    if (row->depth % LANES)
        memset(to, 0, (size_t)(row->points * pixels * pixel) * sizeof(float));
    for (int64_t i = 0; i < row->channels * row->points * s; i++) {
        const int64_t c = i / (row->points * s), q = i / s % row->points;
        float *line = to + q * pixels * pixel + (c * s + i % s) * s;
        const float *from = planes + i * pixels * s;

        if (s == 2)
            phase_conv_split_row(line, pixel, from, pixels, 2);
        else if (s == 4)
            phase_conv_split_row(line, pixel, from, pixels, 4);
        else
            phase_conv_split_row(line, pixel, from, pixels, s);
    }
}

SIMD_INLINE void phase_conv_input_tile(float *v, int64_t apart, const float *x, int64_t line,
                                       int64_t pixel, const int r)
{
    const int n = r + 3;
    vec half[PHASE_CONV_MOST_POINTS * PHASE_CONV_MOST_POINTS];

    PHASE_CONV_UNROLL for (int u = 0; u < n; u++)
    {
        vec in[PHASE_CONV_MOST_POINTS];

        PHASE_CONV_UNROLL for (int i = 0; i < n; i++) in[i] = simd_load(x + u * line + i * pixel);
        simd_winograd_b(half + u * n, 1, in, 1, r);
    }
    PHASE_CONV_UNROLL for (int i = 0; i < n; i++)
    {
        vec out[PHASE_CONV_MOST_POINTS];

        simd_winograd_b(out, 1, half + i, n, r);
        PHASE_CONV_UNROLL for (int u = 0; u < n; u++) simd_store(v + (u * n + i) * apart, out[u]);
    }
}

static void phase_conv_input_transform(float *v, const float *phases, const phase_conv_row *row)
{
    const int64_t vectors = phase_conv_vectors(row->depth), pixel = vectors * LANES;
    const int64_t line = (PHASE_CONV_TILE * row->columns + row->taps - 1) * pixel;

    for (int64_t j = 0; j < row->columns; j++)
        for (int64_t b = 0; b < vectors; b++) {
            const float *x = phases + j * PHASE_CONV_TILE * pixel + b * LANES;
            float *to = v + (b * row->tiles + j) * LANES;

            PHASE_CONV_FOR_TAPS(row->taps,
                                phase_conv_input_tile(to, row->v_apart, x, line, pixel, r));
        }
}

/* --- results --- */

/* The first `rows` and `pixels` of a tile; they are constants where it is whole. */
SIMD_INLINE void phase_conv_output_tile(cell *y, const float *m, const phase_conv_row *row,
                                        vec bias, const int64_t rows, const int64_t pixels,
                                        const int r)
{
    const int n = r + 3;
    vec half[PHASE_CONV_TILE * PHASE_CONV_MOST_POINTS];

    PHASE_CONV_UNROLL for (int i = 0; i < n; i++)
    {
        vec in[PHASE_CONV_MOST_POINTS];

        PHASE_CONV_UNROLL for (int u = 0; u < n; u++) in[u] =
            simd_load(m + (u * n + i) * row->m_apart);
        simd_winograd_a(half + i, n, in, 1, r);
    }
    PHASE_CONV_UNROLL for (int u = 0; u < PHASE_CONV_TILE; u++) if (u < rows)
    {
        vec out[PHASE_CONV_TILE];

        simd_winograd_a(out, 1, half + u * n, 1, r);
        PHASE_CONV_UNROLL for (int i = 0; i < PHASE_CONV_TILE; i++) if (i < pixels)
            cell_store(y + u * row->y_row + i * row->y_pixel, out[i] + bias);
    }
}

SIMD_INLINE void phase_conv_output_tiles(cell *y, const float *m, vec bias,
                                         const phase_conv_row *row, const int r)
{
    for (int64_t j = 0; j < row->columns; j++, y += PHASE_CONV_TILE * row->y_pixel, m += LANES) {
        const int64_t pixels = row->pixels - j * PHASE_CONV_TILE;

        if (row->rows == PHASE_CONV_TILE && pixels >= PHASE_CONV_TILE)
            phase_conv_output_tile(y, m, row, bias, PHASE_CONV_TILE, PHASE_CONV_TILE, r);
        else
            phase_conv_output_tile(y, m, row, bias, row->rows, pixels, r);
    }
}

static void phase_conv_output_transform(void *y, const float *m, const float *bias,
                                        const phase_conv_row *row)
{
    const vec add = bias ? simd_load(bias) : (vec){0};

    PHASE_CONV_FOR_TAPS(row->taps, phase_conv_output_tiles(y, m, add, row, r));
}

SIMD_INLINE void phase_conv_gradient_tile(float *m, const cell *dy, const phase_conv_row *row,
                                          const int64_t rows, const int64_t pixels, const int r)
{
    const int n = r + 3;
    vec half[PHASE_CONV_TILE * PHASE_CONV_MOST_POINTS];

    PHASE_CONV_UNROLL for (int64_t u = 0; u < PHASE_CONV_TILE; u++)
    {
        vec in[PHASE_CONV_TILE];

        PHASE_CONV_UNROLL for (int i = 0; i < PHASE_CONV_TILE; i++) in[i] =
            u < rows && i < pixels ? cell_load(dy + u * row->y_row + i * row->y_pixel) : (vec){0};
        simd_winograd_a_back(half + u * n, 1, in, 1, r);
    }
    PHASE_CONV_UNROLL for (int i = 0; i < n; i++)
    {
        vec out[PHASE_CONV_MOST_POINTS];

        simd_winograd_a_back(out, 1, half + i, n, r);
        PHASE_CONV_UNROLL for (int u = 0; u < n; u++)
            simd_store(m + (u * n + i) * row->m_apart, out[u]);
    }
}

SIMD_INLINE void phase_conv_gradient_tiles(float *m, const cell *dy, const phase_conv_row *row,
                                           const int r)
{
    for (int64_t j = 0; j < row->columns; j++, dy += PHASE_CONV_TILE * row->y_pixel, m += LANES) {
        const int64_t pixels = row->pixels - j * PHASE_CONV_TILE;

        if (row->rows == PHASE_CONV_TILE && pixels >= PHASE_CONV_TILE)
            phase_conv_gradient_tile(m, dy, row, PHASE_CONV_TILE, PHASE_CONV_TILE, r);
        else
            phase_conv_gradient_tile(m, dy, row, row->rows, pixels, r);
    }
}

static void phase_conv_gradient_transform(float *m, const void *dy, const phase_conv_row *row)
{
    PHASE_CONV_FOR_TAPS(row->taps, phase_conv_gradient_tiles(m, dy, row, r));
}

/* --- products --- */

/* m (columns, tiles, LANES), `rows` tiles of it. */
SIMD_INLINE void phase_conv_product(float *m, const float *v, const float *u,
                                    const phase_conv_row *row, const int rows, const int columns)
{
    const int64_t line = row->tiles * LANES, column = row->depth * LANES;
    simd_tile_row sum[PHASE_CONV_ROWS];

    simd_tile_clear(sum, rows, columns);
    for (int64_t left = row->depth; left > 0; left -= LANES, v += line) {
        const int64_t some = phase_conv_least(left, LANES);

        for (int64_t i = 0; i < some; i++, u += LANES)
            simd_tile_add(sum, v + i, LANES, u, column, rows, columns);
    }
    simd_tile_store(m, line, sum, rows, columns);
}

#define PHASE_CONV_CASE(n)                                                                         \
    case n:                                                                                        \
        if (columns == 2)                                                                          \
            phase_conv_product(m, v, u, row, n, 2);                                                \
        else                                                                                       \
            phase_conv_product(m, v, u, row, n, 1);                                                \
        break;

/* The number of tiles is a constant in each branch. */
static void phase_conv_multiply_tiles(float *m, const float *v, const float *u,
                                      const phase_conv_row *row, int64_t tiles, int columns)
{
    switch (tiles) {
        SIMD_TILE_EACH(PHASE_CONV_ROWS, PHASE_CONV_CASE)
    default:
        break;
    }
}

static void phase_conv_multiply(float *m, const float *v, const float *u, int64_t blocks,
                                const phase_conv_row *row)
{
    const int64_t parts = (row->tiles + PHASE_CONV_ROWS - 1) / PHASE_CONV_ROWS;

    for (int64_t o = 0; o < blocks; o += 2)
        for (int64_t i = 0; i < parts; i++) {
            const int64_t first = row->tiles * i / parts, end = row->tiles * (i + 1) / parts;

            phase_conv_multiply_tiles(m + (o * row->tiles + first) * LANES, v + first * LANES,
                                      u + o * row->depth * LANES, row, end - first,
                                      o + 1 < blocks ? 2 : 1);
        }
}

/* du (columns, rows, LANES) over all tiles. */
SIMD_INLINE void phase_conv_correlation(float *du, const float *v, const float *m,
                                        const phase_conv_row *row, const int rows,
                                        const int columns)
{
    const int64_t line = row->tiles * LANES, column = row->depth * LANES;
    simd_tile_row sum[PHASE_CONV_STEP];

    simd_tile_load(sum, du, column, rows, columns);
    SIMD_UNROLL_BY(2)
    for (int64_t t = 0; t < row->tiles; t++, v += LANES, m += LANES)
        simd_tile_add(sum, v, 1, m, line, rows, columns);
    simd_tile_store(du, column, sum, rows, columns);
}

#define PHASE_CONV_STEPS(n)                                                                        \
    case n:                                                                                        \
        if (columns == 2)                                                                          \
            phase_conv_correlation(du, v, m, row, n, 2);                                           \
        else                                                                                       \
            phase_conv_correlation(du, v, m, row, n, 1);                                           \
        break;

static void phase_conv_correlate_inputs(float *du, const float *v, const float *m,
                                        const phase_conv_row *row, int64_t inputs, int columns)
{
    switch (inputs) {
        SIMD_TILE_EACH(PHASE_CONV_STEP, PHASE_CONV_STEPS)
    default:
        break;
    }
}

/* Groups of inputs differ by one at most. */
static void phase_conv_correlate(float *du, const float *v, const float *m, int64_t blocks,
                                 const phase_conv_row *row)
{
    const int64_t line = row->tiles * LANES;

    for (int64_t o = 0; o < blocks; o += 2)
        for (int64_t b = 0; b < row->depth; b += LANES) {
            const int64_t some = phase_conv_least(row->depth - b, LANES);
            const int64_t groups = (some + PHASE_CONV_STEP - 1) / PHASE_CONV_STEP;

            for (int64_t g = 0; g < groups; g++) {
                const int64_t first = some * g / groups, end = some * (g + 1) / groups;

                phase_conv_correlate_inputs(du + (o * row->depth + b + first) * LANES,
                                            v + b / LANES * line + first, m + o * line, row,
                                            end - first, o + 1 < blocks ? 2 : 1);
            }
        }
}

#include "kernels/phase_conv/phase_conv_filters.h"
