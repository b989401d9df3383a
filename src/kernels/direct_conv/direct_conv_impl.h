/*
 * direct_conv_impl.h - the products of direct_conv.h for LANES lanes. Included once for each
 * instruction set, by a file that defines LANES, DIRECT_CONV_TABLE and DIRECT_CONV_NAME, and what
 * fits into the registers:
 *
 *   DIRECT_CONV_PIXELS   of a product, times two vectors of results; even
 *   DIRECT_CONV_DEPTH    channels of a gradient, times two vectors; a divisor of LANES
 *
 * For tensors of BF16 that file defines CELL_HALF, too, and what differs: see
 * direct_conv_bf16.c and direct_conv_widened.c. Independent of calls, tensors and plans.
 */
#include "kernels/cell.h"

#ifndef CELL_HALF
#define DIRECT_CONV_WORDS  LANES /* of a pixel of a block */
#define DIRECT_CONV_SPREAD direct_conv_spread_plane
#define DIRECT_CONV_HALVE  NULL
#define DIRECT_CONV_PAIR   NULL
#define DIRECT_CONV_JOIN   NULL
#define DIRECT_CONV_PACK   direct_conv_pack
#include "kernels/direct_conv/direct_conv_images.h"
/* after it */
#include "kernels/direct_conv/direct_conv_floats.h"
#include "kernels/direct_conv/direct_conv_unpack.h"
#endif

#define DIRECT_CONV_PAIRS (DIRECT_CONV_PIXELS / 2) /* most pixels of a tile of two rows */

/* A step's pixels of the next tile. */
SIMD_INLINE void direct_conv_fetch_next(const float *first, const direct_conv_area *area,
                                        const int rows, const int pixels)
{
    const int line = SIMD_LINE / (DIRECT_CONV_WORDS * (int)sizeof(float));

    SIMD_UNROLL(36)
    for (int r = 0; r < rows; r++)
        SIMD_UNROLL(36)
    for (int p = 0; p < pixels; p += line)
        __builtin_prefetch(first + r * area->x_row + (pixels + p) * area->x_pixel);
}

/* sum += x w, for `columns` vectors of w. With half of the words spread into registers, and half
   read by the products, loads are fewer than products, and instructions than with all spread. */
SIMD_INLINE void direct_conv_meet(vec *sum, const float *x, const vec *w, const int columns,
                                  const bool spread)
{
    const cell_factor each = spread ? cell_each(x) : (cell_factor){0};

    SIMD_UNROLL(36)
    for (int q = 0; q < columns; q++)
        sum[q] = spread ? cell_meet(sum[q], each, w[q]) : cell_read(sum[q], x, w[q]);
}

/* `rows` of `pixels` results, at most DIRECT_CONV_PIXELS in all, or twice as many of one column;
   the last four are constants in each use. */
SIMD_INLINE void direct_conv_tile(cell *y, const float *x, const float *w, int64_t panel,
                                  const float *bias, const direct_conv_area *area,
                                  const direct_conv_sum *sum, const int rows, const int pixels,
                                  const int columns, const bool blocks)
{
    const int width = blocks ? DIRECT_CONV_WORDS : 1;
    const int64_t pixel = area->x_pixel, four = 4 * pixel;
    vec acc[DIRECT_CONV_PIXELS][2];

    SIMD_UNROLL(36)
    for (int p = 0; p < rows * pixels; p++)
        SIMD_UNROLL(36)
    for (int q = 0; q < columns; q++)
        acc[p][q] = bias ? simd_load(bias + q * LANES) : (vec){0};
    for (int64_t s = 0; s < sum->steps; s++) {
        const float *first = x + sum->at[s];
        const float *from[2][4] = {
            {first, first + four, first + 2 * four, first + 3 * four},
            {first + area->x_row, first + area->x_row + four},
        };

        if (blocks && area->fetch)
            direct_conv_fetch_next(first, area, rows, pixels);
        SIMD_UNROLL(4) for (int i = 0; i < width; i++, w += LANES)
        {
            vec weight[2];

            SIMD_UNROLL(36) for (int q = 0; q < columns; q++) weight[q] = simd_load(w + q * panel);
            SIMD_UNROLL(36)
            for (int p = 0; p < rows * pixels; p++)
                direct_conv_meet(acc[p],
                                 &from[p / pixels][p % pixels / 4][p % pixels % 4 * pixel + i],
                                 weight, columns, p % 2 == 0);
        }
    }
    SIMD_UNROLL(36) for (int p = 0; p < rows * pixels; p++)
    {
        cell *to = y + p / pixels * area->y_row + p % pixels * area->y_pixel;

        SIMD_UNROLL(36)
        for (int q = 0; q < columns; q++)
            cell_store(to + q * area->y_block, acc[p][q]);
    }
}

#define DIRECT_CONV_CASE(r, n)                                                                     \
    case n:                                                                                        \
        if (!sum->blocks && columns == 2)                                                          \
            direct_conv_tile(y, x, w, panel, bias, area, sum, r, n, 2, false);                     \
        else if (!sum->blocks)                                                                     \
            direct_conv_tile(y, x, w, panel, bias, area, sum, r, n, 1, false);                     \
        else if (columns == 2)                                                                     \
            direct_conv_tile(y, x, w, panel, bias, area, sum, r, n, 2, true);                      \
        else                                                                                       \
            direct_conv_tile(y, x, w, panel, bias, area, sum, r, n, 1, true);                      \
        break;

/* The tile's size is a constant in each branch. */
static void direct_conv_one_row(cell *y, const float *x, const float *w, int64_t panel,
                                const float *bias, int columns, int64_t pixels,
                                const direct_conv_area *area, const direct_conv_sum *sum)
{
    switch (pixels) {
        DIRECT_CONV_CASE(1, 1)
        DIRECT_CONV_CASE(1, 2)
#if DIRECT_CONV_PIXELS > 2
        DIRECT_CONV_CASE(1, 3)
        DIRECT_CONV_CASE(1, 4)
        DIRECT_CONV_CASE(1, 5)
        DIRECT_CONV_CASE(1, 6)
#endif
#if DIRECT_CONV_PIXELS > 6
        DIRECT_CONV_CASE(1, 7)
        DIRECT_CONV_CASE(1, 8)
        DIRECT_CONV_CASE(1, 9)
        DIRECT_CONV_CASE(1, 10)
        DIRECT_CONV_CASE(1, 11)
        DIRECT_CONV_CASE(1, 12)
        DIRECT_CONV_CASE(1, 13)
        DIRECT_CONV_CASE(1, 14)
#endif
    default:
        break;
    }
}

static void direct_conv_two_rows(cell *y, const float *x, const float *w, int64_t panel,
                                 const float *bias, int columns, const direct_conv_area *area,
                                 const direct_conv_sum *sum)
{
    switch (area->pixels) {
        DIRECT_CONV_CASE(2, 1)
#if DIRECT_CONV_PIXELS > 2
        DIRECT_CONV_CASE(2, 2)
        DIRECT_CONV_CASE(2, 3)
#endif
#if DIRECT_CONV_PIXELS > 6
        DIRECT_CONV_CASE(2, 4)
        DIRECT_CONV_CASE(2, 5)
        DIRECT_CONV_CASE(2, 6)
        DIRECT_CONV_CASE(2, 7)
#endif
    default:
        break;
    }
}

/* Tiles of a row differ by one pixel at most; short rows are computed two at a time. */
static void direct_conv_multiply(void *to, const float *x, const float *w, int64_t panel,
                                 const float *bias, int columns, const direct_conv_area *area,
                                 const direct_conv_sum *sum)
{
    const int64_t parts = (area->pixels + DIRECT_CONV_PIXELS - 1) / DIRECT_CONV_PIXELS;
    cell *y = to;
    int64_t r = 0;

    for (; area->pixels <= DIRECT_CONV_PAIRS && r + 2 <= area->rows; r += 2)
        direct_conv_two_rows(y + r * area->y_row, x + r * area->x_row, w, panel, bias, columns,
                             area, sum);
    for (; r < area->rows; r++)
        for (int64_t i = 0; i < parts; i++) {
            const int64_t begin = area->pixels * i / parts, end = area->pixels * (i + 1) / parts;

            direct_conv_one_row(y + r * area->y_row + begin * area->y_pixel,
                                x + r * area->x_row + begin * area->x_pixel, w, panel, bias,
                                columns, end - begin, area, sum);
        }
}

/* A row's part of the sums of `direct_conv_correlation`. */
SIMD_INLINE void direct_conv_correlate_row(vec (*acc)[2], const float *x, const float *dy,
                                           const direct_conv_walk *walk, const int64_t *at,
                                           const int depth, const int columns, const bool blocks)
{
    SIMD_UNROLL_BY(2)
    for (int64_t p = 0; p < walk->pixels; p++, x += walk->x_pixel, dy += LANES) {
        vec d[2];

        SIMD_UNROLL(36)
        for (int q = 0; q < columns; q++)
            d[q] = simd_load(dy + q * walk->dy_block);
        SIMD_UNROLL(36)
        for (int i = 0; i < depth; i++)
            direct_conv_meet(acc[i], blocks || i == 0 ? &x[i] : &x[at[i] - at[0]], d, columns,
                             i % 2 == 0);
    }
}

/* dw of `depth` channels of a step, or of as many steps of one channel. `at` has their offsets. */
SIMD_INLINE void direct_conv_correlation(float *dw, int64_t panel, const float *x, const float *dy,
                                         const direct_conv_walk *walk, const int64_t *at, bool add,
                                         const int depth, const int columns, const bool blocks)
{
    vec acc[DIRECT_CONV_DEPTH][2];

    SIMD_UNROLL(36)
    for (int i = 0; i < depth; i++)
        SIMD_UNROLL(36)
    for (int q = 0; q < columns; q++)
        acc[i][q] = add ? simd_load(dw + q * panel + i * LANES) : (vec){0};
    for (int64_t n = 0; n < walk->samples; n++)
        for (int64_t r = 0; r < walk->rows; r++) {
            const float *xs = x + n * walk->x_sample + r * walk->x_row + (blocks ? 0 : at[0]);
            const float *dys = dy + n * walk->dy_sample + r * walk->dy_row;

            direct_conv_correlate_row(acc, xs, dys, walk, at, depth, columns, blocks);
        }
    SIMD_UNROLL(36)
    for (int i = 0; i < depth; i++)
        SIMD_UNROLL(36)
    for (int q = 0; q < columns; q++)
        simd_store(dw + q * panel + i * LANES, acc[i][q]);
}

/* Steps at once: each has an address in a register. */
#define DIRECT_CONV_FEW_DEPTH (DIRECT_CONV_DEPTH > 7 ? 7 : DIRECT_CONV_DEPTH)
#define DIRECT_CONV_FEW(n)                                                                         \
    case n:                                                                                        \
        direct_conv_correlation(dw, panel, x, dy, walk, at, add, n, columns, false);               \
        break;

/* `n` steps of one channel. */
SIMD_INLINE void direct_conv_correlate_few(float *dw, int64_t panel, const float *x,
                                           const float *dy, const direct_conv_walk *walk,
                                           const int64_t *at, bool add, int64_t n,
                                           const int columns)
{
    switch (n) {
        DIRECT_CONV_FEW(1)
        DIRECT_CONV_FEW(2)
#if DIRECT_CONV_DEPTH > 2
        DIRECT_CONV_FEW(3)
        DIRECT_CONV_FEW(4)
#endif
#if DIRECT_CONV_DEPTH > 4
        DIRECT_CONV_FEW(5)
        DIRECT_CONV_FEW(6)
        DIRECT_CONV_FEW(7)
#endif
    default:
        break;
    }
}

/* `columns` is a constant in each use. Groups of steps of one channel differ by one at most: a
   single one would wait for its sum at each pixel. */
SIMD_INLINE void direct_conv_correlate_columns(float *dw, int64_t panel, const float *x,
                                               const float *dy, const direct_conv_walk *walk,
                                               const direct_conv_sum *sum, bool add,
                                               const int columns)
{
    const int64_t groups = (sum->steps + DIRECT_CONV_FEW_DEPTH - 1) / DIRECT_CONV_FEW_DEPTH;

    for (int64_t s = 0; sum->blocks && s < sum->steps; s++)
        for (int i = 0; i < LANES; i += DIRECT_CONV_DEPTH, dw += DIRECT_CONV_DEPTH * LANES)
            direct_conv_correlation(dw, panel, x + sum->at[s] + i, dy, walk, NULL, add,
                                    DIRECT_CONV_DEPTH, columns, true);
    for (int64_t g = 0; !sum->blocks && g < groups; g++) {
        const int64_t begin = sum->steps * g / groups, end = sum->steps * (g + 1) / groups;

        direct_conv_correlate_few(dw + begin * LANES, panel, x, dy, walk, sum->at + begin, add,
                                  end - begin, columns);
    }
}

static void direct_conv_correlate(float *dw, int64_t panel, const float *x, const float *dy,
                                  int columns, const direct_conv_walk *walk,
                                  const direct_conv_sum *sum, bool add)
{
    if (columns == 2)
        direct_conv_correlate_columns(dw, panel, x, dy, walk, sum, add, 2);
    else
        direct_conv_correlate_columns(dw, panel, x, dy, walk, sum, add, 1);
}

static void direct_conv_add_up(float *sum, const void *from, int64_t pixels)
{
    const cell *dy = from;
    vec acc[4] = {simd_load_any(sum)};
    int64_t p = 0;

    for (; p + 4 <= pixels; p += 4)
        for (int k = 0; k < 4; k++)
            acc[k] += cell_load(dy + (p + k) * LANES);
    for (; p < pixels; p++)
        acc[0] += cell_load(dy + p * LANES);
    simd_store_any(sum, (acc[0] + acc[1]) + (acc[2] + acc[3]));
}

const direct_conv_loops DIRECT_CONV_TABLE = {
    .name = DIRECT_CONV_NAME,
    .lanes = LANES,
    .few = LANES - 1,
    .words = DIRECT_CONV_WORDS,
    .cell = sizeof(cell),
    .together = DIRECT_CONV_TOGETHER,
    .multiply = direct_conv_multiply,
    .correlate = direct_conv_correlate,
    .add_up = direct_conv_add_up,
    .spread = DIRECT_CONV_SPREAD,
    .halve = DIRECT_CONV_HALVE,
    .join = DIRECT_CONV_JOIN,
    .pair = DIRECT_CONV_PAIR,
    .pack = DIRECT_CONV_PACK,
    .turn = direct_conv_turn,
    .unpack = direct_conv_unpack,
};
