/*
 * direct_conv_bf16.c - the loops of direct_conv.h for tensors of BF16, with the products of BF16
 * that AVX-512 has and sums in fp32.
 */
#define LANES              16
#define DIRECT_CONV_PIXELS 14
#define DIRECT_CONV_DEPTH  8
#define DIRECT_CONV_TABLE  direct_conv_loops_bf16
#define DIRECT_CONV_NAME   "direct:bf16"
#define CELL_HALF
#define DIRECT_CONV_WORDS  (LANES / 2)
#define DIRECT_CONV_SPREAD direct_conv_spread_half
#define DIRECT_CONV_HALVE  direct_conv_halve
#define DIRECT_CONV_JOIN   direct_conv_join
#define DIRECT_CONV_PAIR   direct_conv_pair
#define DIRECT_CONV_PACK   direct_conv_pack

#include "kernels/direct_conv/direct_conv_images.h"
/* after it */
#include "kernels/direct_conv/direct_conv_half.h"
#include "kernels/direct_conv/direct_conv_unpack.h"
#include "kernels/direct_conv/direct_conv_widen.h"

/* The first n, at most LANES. */
SIMD_INLINE half16 direct_conv_take_some(const uint16_t *from, int64_t n)
{
    return n < LANES ? (half16)_mm256_maskz_loadu_epi16(simd_first(n), from) : half16_take(from);
}

static void direct_conv_join(float *to, const void *first, const void *second,
                             const direct_conv_spread *how)
{
    const direct_conv_range rows = direct_conv_inside(how->top, 1, how->h, how->rows);
    const direct_conv_range columns = direct_conv_inside(how->left, 1, how->w, how->columns);
    const int64_t inside = columns.end - columns.begin;

    if (!how->again)
        memset(to, 0, (size_t)(how->rows * how->columns) * sizeof(float));
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const int64_t at = (how->top + r) * how->w + how->left + columns.begin;
        const uint16_t *a = (const uint16_t *)first + at;
        const uint16_t *b = second ? (const uint16_t *)second + at : NULL;
        float *row = to + r * how->columns + columns.begin;

        for (int64_t c = 0; c < inside; c += LANES)
            simd_store_any(row + c,
                           half16_join(direct_conv_take_some(a + c, inside - c),
                                       b ? direct_conv_take_some(b + c, inside - c) : (half16){0}));
    }
}

static void direct_conv_spread_half(float *to, const void *from, const direct_conv_spread *how)
{
    if (how->blocks)
        direct_conv_spread_plane(to, from, how);
    else
        direct_conv_widen_plane(to, from, how, 1);
}

#include "kernels/direct_conv/direct_conv_impl.h"
