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
#include "kernels/half16.h"

typedef uint16_t direct_conv_cell;

SIMD_INLINE vec direct_conv_take(const direct_conv_cell *from)
{
    return half16_load(from);
}

SIMD_INLINE void direct_conv_put(direct_conv_cell *to, vec value)
{
    half16_store(to, value);
}

SIMD_INLINE vec direct_conv_meet(vec sum, float x, vec w, const bool blocks)
{
    if (!blocks)
        return sum + x * w;
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_ps(x), (__m512bh)w);
}

/* Pairs of a (the lower) and b. */
SIMD_INLINE void direct_conv_join(float *to, __m256i a, __m256i b)
{
    const __m512i low = _mm512_cvtepu16_epi32(a), high = _mm512_cvtepu16_epi32(b);

    _mm512_storeu_si512(to, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

static void direct_conv_halve(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        direct_conv_join(to + i, half16_round(simd_load_any(from + 2 * i)),
                         half16_round(simd_load_any(from + 2 * i + LANES)));
}

static void direct_conv_pair(float *to, const void *from, const direct_conv_spread *how)
{
    const direct_conv_cell *x = from;

    for (int64_t r = 0; r < how->rows; r++)
        for (int64_t c = 0; c < how->columns; c += 2, to += LANES) {
            const int64_t row = how->top + r * how->step[0];
            __m256i pixel[2];

            for (int64_t i = 0; i < 2; i++) {
                const int64_t column = how->left + (c + i) * how->step[1];
                const bool inside = row >= 0 && row < how->h && column >= 0 && column < how->w &&
                                    c + i < how->columns;

                pixel[i] =
                    inside
                        ? _mm256_loadu_si256((const __m256i *)(x + (row * how->w + column) * LANES))
                        : _mm256_setzero_si256();
            }
            direct_conv_join(to, pixel[0], pixel[1]);
        }
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
