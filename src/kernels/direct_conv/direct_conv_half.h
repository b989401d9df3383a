/*
 * direct_conv_half.h - weights and images of BF16 as pairs, for blocks of DIRECT_CONV_BLOCK
 * channels: a part of direct_conv.h's loops that two files share.
 */
#include "kernels/half16.h"

/* Columns of a square of pairs whose rows follow each other; then come the next columns. */
#ifndef DIRECT_CONV_PAIR_COLUMNS
#define DIRECT_CONV_PAIR_COLUMNS DIRECT_CONV_BLOCK
#endif

/* Where the pair of rows `row` and the one after is, in columns from `column` on. */
SIMD_INLINE int64_t direct_conv_find_pair(int64_t row, int64_t column)
{
    const int64_t columns = DIRECT_CONV_PAIR_COLUMNS;

    return (column / columns * DIRECT_CONV_BLOCK + row) / 2 * columns + column % columns;
}

#if DIRECT_CONV_PAIR_COLUMNS == DIRECT_CONV_BLOCK
static void direct_conv_halve(float *to, const float *from, int64_t n, int64_t row)
{
    half16_join_rows(to, from, 2 * n, row);
}
#else
static void direct_conv_halve(float *to, const float *from, int64_t n, int64_t row)
{
    const int64_t block = DIRECT_CONV_BLOCK;

    (void)row; /* a block: there are no other weights */
    for (int64_t i = 0; i < n; i += block * block / 2, to += block * block / 2)
        for (int64_t r = 0; r < block; r += 2, from += 2 * block)
            for (int64_t c = 0; c < block; c += LANES)
                simd_store(to + direct_conv_find_pair(r, c),
                           half16_join(half16_round(simd_load(from + c)),
                                       half16_round(simd_load(from + block + c))));
}
#endif

/* From pairs of inputs to pairs of outputs: each number is the upper half of a float meanwhile. */
static void direct_conv_turn(float *to, const float *from)
{
    const int64_t block = DIRECT_CONV_BLOCK;

    for (int64_t r = 0; r < block; r += LANES)
        for (int64_t c = 0; c < block; c += LANES) {
            vec v[LANES];

            SIMD_UNROLL(8) for (int i = 0; i < LANES; i += 2)
            {
                const uvec pair = (uvec)simd_load(from + direct_conv_find_pair(r + i, c));

                v[i] = (vec)(pair << 16);
                v[i + 1] = (vec)(pair & ~(uint32_t)UINT16_MAX);
            }
            simd_transpose(v);
            SIMD_UNROLL(8) for (int i = 0; i < LANES; i += 2)
            {
                simd_store(to + direct_conv_find_pair(c + i, r),
                           (vec)((uvec)v[i] >> 16 | (uvec)v[i + 1]));
            }
        }
}

/* What comes some time after a pixel, to the second-level cache: copies are made faster than a CPU
   fetches by itself. */
SIMD_INLINE void direct_conv_fetch(const uint16_t *pixel)
{
    __builtin_prefetch(pixel + 64 * DIRECT_CONV_BLOCK, 0, 2);
}

/* Of the channels of two pixels; NULL is one of zeros. */
SIMD_INLINE void direct_conv_put_pair(float *to, const uint16_t *first, const uint16_t *second)
{
    SIMD_UNROLL(2)
    for (int64_t h = 0; h < DIRECT_CONV_BLOCK; h += LANES)
        simd_store(to + h, half16_join(first ? half16_take(first + h) : (half16){0},
                                       second ? half16_take(second + h) : (half16){0}));
}

/* `n` pairs of pixels that there are. */
static void direct_conv_put_pairs(float *to, const uint16_t *first, int64_t step, int64_t n)
{
    for (int64_t i = 0; i < n; i++, first += 2 * step, to += DIRECT_CONV_BLOCK) {
        direct_conv_fetch(first);
        if (step * (int64_t)sizeof(*first) > SIMD_LINE / 2)
            direct_conv_fetch(first + step);
        direct_conv_put_pair(to, first, first + step);
    }
}

static void direct_conv_pair_row(float *to, const uint16_t *x, const direct_conv_spread *how,
                                 int64_t row)
{
    const direct_conv_range inside =
        direct_conv_inside(how->left, how->step[1], how->w, how->columns);
    const int64_t step = how->step[1] * DIRECT_CONV_BLOCK;
    const uint16_t *pixel = x + (row * how->w + how->left) * DIRECT_CONV_BLOCK;

    for (int64_t c = 0; c < how->columns;) {
        const bool first = c >= inside.begin && c < inside.end;
        const bool second = c + 1 >= inside.begin && c + 1 < inside.end;
        const int64_t pairs = first && second ? (inside.end - c) / 2 : 1;

        if (first && second)
            direct_conv_put_pairs(to, pixel + c * step, step, pairs);
        else
            direct_conv_put_pair(to, first ? pixel + c * step : NULL,
                                 second ? pixel + (c + 1) * step : NULL);
        c += 2 * pairs;
        to += pairs * DIRECT_CONV_BLOCK;
    }
}

static void direct_conv_pair(float *to, const void *from, const direct_conv_spread *how)
{
    const direct_conv_range inside = direct_conv_inside(how->top, how->step[0], how->h, how->rows);
    const int64_t words = (how->columns + 1) / 2 * DIRECT_CONV_BLOCK;

    for (int64_t r = 0; r < how->rows; r++, to += words)
        if (r >= inside.begin && r < inside.end)
            direct_conv_pair_row(to, from, how, how->top + r * how->step[0]);
        else
            memset(to, 0, (size_t)words * sizeof(float));
    memset(to, 0, (size_t)(how->after * DIRECT_CONV_BLOCK) * sizeof(float));
}
