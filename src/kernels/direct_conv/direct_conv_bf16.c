/*
 * direct_conv_bf16.c - the loops of direct_conv.h for tensors of BF16, with the products of BF16
 * that AVX-512 has and sums in fp32. Few channels are multiplied as floats.
 */
#define LANES              16
#define DIRECT_CONV_PIXELS 14
#define DIRECT_CONV_DEPTH  8
#define DIRECT_CONV_TABLE  direct_conv_loops_bf16
#define DIRECT_CONV_NAME   "direct:bf16"
#define DIRECT_CONV_HALF
#define DIRECT_CONV_WORDS  (LANES / 2)
#define DIRECT_CONV_SPREAD direct_conv_spread_half
#define DIRECT_CONV_HALVE  direct_conv_halve
#define DIRECT_CONV_PAIR   direct_conv_pair

#include "kernels/direct_conv/direct_conv_images.h"
/* after it */
#include "kernels/direct_conv/direct_conv_half.h"

typedef uint16_t direct_conv_cell;

#define direct_conv_take half16_load
#define direct_conv_put  half16_store

SIMD_INLINE vec direct_conv_meet(vec sum, float x, vec w, const bool blocks)
{
    if (!blocks)
        return sum + x * w;
    return half16_dot(sum, x, w);
}

static void direct_conv_pair(float *to, const void *from, const direct_conv_spread *how)
{
    for (int64_t r = 0; r < how->rows; r++)
        for (int64_t c = 0; c < how->columns; c += 2, to += LANES)
            simd_store(to, direct_conv_find_pair(from, how, r, c, 0));
}

/* A row of one channel to floats. */
static void direct_conv_widen_row(float *to, const direct_conv_cell *from, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)from[i * step] << 16;

        memcpy(to + i, &bits, sizeof(bits));
    }
}

static void direct_conv_spread_half(float *to, const void *from, const direct_conv_spread *how)
{
    const direct_conv_range rows = direct_conv_inside(how->top, how->step[0], how->h, how->rows);
    const direct_conv_range columns =
        direct_conv_inside(how->left, how->step[1], how->w, how->columns);
    const direct_conv_cell *x = from;

    if (how->blocks) {
        direct_conv_spread_plane(to, from, how);
        return;
    }
    memset(to, 0, (size_t)(how->rows * how->columns) * sizeof(*to));
    for (int64_t r = rows.begin; r < rows.end; r++)
        direct_conv_widen_row(to + r * how->columns + columns.begin,
                              x + (how->top + r * how->step[0]) * how->w + how->left +
                                  columns.begin * how->step[1],
                              columns.end - columns.begin, how->step[1]);
}

#include "kernels/direct_conv/direct_conv_impl.h"
