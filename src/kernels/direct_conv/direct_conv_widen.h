/*
 * direct_conv_widen.h - images of BF16 to floats: a part of direct_conv.h's loops that two files
 * share.
 */
#include "kernels/half16.h"

/* Numbers that follow each other. */
static void direct_conv_widen_numbers(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        simd_store_any(to + i, half16_load(from + i));
    for (; i < n; i++) {
        const uint32_t bits = (uint32_t)from[i] << 16;

        memcpy(to + i, &bits, sizeof(bits));
    }
}

/* A copy of a plane, of pixels of `width` numbers. */
static void direct_conv_widen_plane(float *to, const void *from, const direct_conv_spread *how,
                                    const int64_t width)
{
    const int64_t *step = how->step;
    const direct_conv_range rows = direct_conv_inside(how->top, step[0], how->h, how->rows);
    const direct_conv_range columns = direct_conv_inside(how->left, step[1], how->w, how->columns);
    const int64_t inside = columns.end - columns.begin;
    const bool whole = rows.end - rows.begin == how->rows && inside == how->columns;

    if (!how->again && !whole)
        memset(to, 0, (size_t)(how->rows * how->columns * width) * sizeof(*to));
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const int64_t left = (how->top + r * step[0]) * how->w + how->left;
        const uint16_t *row = (const uint16_t *)from + (left + columns.begin * step[1]) * width;
        float *place = to + (r * how->columns + columns.begin) * width;

        if (step[1] == 1) {
            direct_conv_widen_numbers(place, row, inside * width);
            continue;
        }
        for (int64_t c = 0; c < inside; c++)
            direct_conv_widen_numbers(place + c * width, row + c * step[1] * width, width);
    }
}
