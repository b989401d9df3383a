/*
 * direct_conv_images.h - the changes of form of direct_conv.h: images with padding and strides to
 * dense ones, weights to blocks and back. For LANES lanes, blocks of DIRECT_CONV_BLOCK channels (a
 * vector or several), and DIRECT_CONV_WORDS words of a pixel of a block.
 */
#include <string.h>

#include "kernels/direct_conv/direct_conv.h"
#include "kernels/simd.h"

#ifndef DIRECT_CONV_BLOCK
#define DIRECT_CONV_BLOCK LANES
#endif

/* --- images --- */

/* Pixels [begin, end) of a copy's row or column are inside an image of `size` pixels. */
typedef struct direct_conv_range {
    int64_t begin, end;
} direct_conv_range;

static direct_conv_range direct_conv_inside(int64_t first, int64_t step, int64_t size, int64_t n)
{
    const int64_t begin = first < 0 ? (-first + step - 1) / step : 0;
    const int64_t end = first < size ? (size - first + step - 1) / step : 0;
    const direct_conv_range range = {begin < n ? begin : n, end < n ? end : n};

    return range.begin < range.end ? range : (direct_conv_range){0, 0};
}

/* The last vector overlaps the one before. */
SIMD_INLINE void direct_conv_copy_row(float *to, const float *from, int64_t n)
{
    if (n < LANES) {
        memcpy(to, from, (size_t)n * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < n - LANES; i += LANES)
        simd_store_any(to + i, simd_load_any(from + i));
    simd_store_any(to + n - LANES, simd_load_any(from + n - LANES));
}

/* Rows of `width` floats a pixel. */
SIMD_INLINE void direct_conv_spread_rows(float *to, const float *from,
                                         const direct_conv_spread *how, int64_t width)
{
    const direct_conv_range rows = direct_conv_inside(how->top, 1, how->h, how->rows);
    const direct_conv_range columns = direct_conv_inside(how->left, 1, how->w, how->columns);
    const int64_t first = how->left + columns.begin, inside = columns.end - columns.begin;

    if (!how->again)
        memset(to, 0, (size_t)(how->rows * how->columns * width) * sizeof(float));
    for (int64_t r = rows.begin; r < rows.end; r++)
        direct_conv_copy_row(to + (r * how->columns + columns.begin) * width,
                             from + ((how->top + r) * how->w + first) * width, inside * width);
}

/* The pixels of a block that steps lead to. */
static inline void direct_conv_spread_pixels(float *to, const float *from,
                                             const direct_conv_spread *how)
{
    const int64_t *step = how->step, words = DIRECT_CONV_WORDS;
    const direct_conv_range rows = direct_conv_inside(how->top, step[0], how->h, how->rows);
    const direct_conv_range columns = direct_conv_inside(how->left, step[1], how->w, how->columns);
    const int64_t inside = (rows.end - rows.begin) * (columns.end - columns.begin);

    if (!how->again && inside < how->rows * how->columns)
        memset(to, 0, (size_t)(how->rows * how->columns * words) * sizeof(float));
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const int64_t left = (how->top + r * step[0]) * how->w + how->left;

        for (int64_t c = columns.begin; c < columns.end; c++)
            memcpy(to + (r * how->columns + c) * words, from + (left + c * step[1]) * words,
                   sizeof(float) * DIRECT_CONV_WORDS);
    }
}

static inline void direct_conv_spread_plane(float *to, const void *from,
                                            const direct_conv_spread *how)
{
    if (how->step[0] > 1 || how->step[1] > 1)
        direct_conv_spread_pixels(to, from, how);
    else
        direct_conv_spread_rows(to, from, how, how->blocks ? DIRECT_CONV_WORDS : 1);
}

/* --- weights --- */

/* Where an element of a row, (in, taps), is in a block; the next one's place is found by
   counting. */
typedef struct direct_conv_place {
    int64_t channel, tap;
} direct_conv_place;

SIMD_INLINE int64_t direct_conv_next(direct_conv_place *at, const direct_conv_weight *shape)
{
    const int64_t c = at->channel, t = at->tap;

    if (++at->tap == shape->taps) {
        at->tap = 0;
        at->channel++;
    }
    if (!shape->blocks)
        return (c * shape->taps + t) * DIRECT_CONV_BLOCK;
    return ((c / DIRECT_CONV_BLOCK * shape->taps + t) * DIRECT_CONV_BLOCK + c % DIRECT_CONV_BLOCK) *
           DIRECT_CONV_BLOCK;
}

SIMD_INLINE int64_t direct_conv_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A square of up to LANES rows by LANES elements. */
SIMD_INLINE void direct_conv_load_square(vec v[LANES], const float *from, int64_t row, int64_t rows,
                                         int64_t n)
{
    if (rows == LANES && n == LANES) {
        SIMD_UNROLL(16) for (int l = 0; l < LANES; l++) v[l] = simd_load_any(from + l * row);
        return;
    }
    for (int64_t l = 0; l < LANES; l++) {
        float some[LANES] = {0};

        if (l < rows)
            memcpy(some, from + l * row, (size_t)n * sizeof(float));
        v[l] = simd_load_any(some);
    }
}

/* LANES rows of outputs from `first` on. */
static void direct_conv_pack_rows(float *to, const float *weight, const direct_conv_weight *shape,
                                  int64_t first)
{
    const int64_t row = shape->in * shape->taps;
    const int64_t rows = direct_conv_least(LANES, shape->out - first);
    direct_conv_place at = {0, 0};

    for (int64_t e = 0; e < row; e += LANES) {
        const int64_t n = direct_conv_least(LANES, row - e);
        vec v[LANES];

        direct_conv_load_square(v, weight + first * row + e, row, rows, n);
        simd_transpose(v);
        for (int64_t l = 0; l < n; l++)
            simd_store(to + direct_conv_next(&at, shape), v[l]);
    }
}

static void direct_conv_pack(float *to, const float *weight, const direct_conv_weight *shape,
                             int64_t k)
{
    const int64_t block = DIRECT_CONV_BLOCK;

    if (shape->blocks && shape->in % block)
        memset(to + shape->in / block * block * shape->taps * block, 0,
               (size_t)(block * shape->taps * block) * sizeof(float));
    for (int64_t h = 0; h < block; h += LANES)
        direct_conv_pack_rows(to + h, weight, shape, k * block + h);
}
