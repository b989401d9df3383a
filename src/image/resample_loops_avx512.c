/*
 * resample_loops_avx512.c - the inner loops of resampling for AVX-512 with VBMI and VNNI.
 *
 * As for AVX2, but 16 results at once, one per 32-bit lane: a byte permutation puts the two taps of
 * each result side by side, whatever the filter's step. Sums are scaled by 4, so that the result is
 * their top byte.
 */
#include <immintrin.h>

#include "image/internal.h"

#define LOOPS_ROW    16 /* 4-byte pixels within reach of a permutation of one register */
#define LOOPS_WINDOW 32 /* and of two */
#define LOOPS_PLANE  64 /* 1-byte pixels within reach of one */
#define LOOPS_SCALE  2  /* extra bits: 1 is 2^24 in the sums */

#define LOOPS_INLINE static inline __attribute__((always_inline))

/* The source of 16 results. */
typedef struct loops_source {
    const uint8_t *at[3]; /* the first pixel of each channel */
    size_t pixel;         /* bytes from one pixel to the next */
    bool wide;            /* permute two registers of each channel */
} loops_source;

LOOPS_INLINE __m512i loops_load(const void *at)
{
    return _mm512_loadu_si512(at);
}

/* The rounding term, in units of the upper halves, which are shifted later. */
LOOPS_INLINE __m512i loops_round(void)
{
    return _mm512_set1_epi32(1 << (CO_IMAGE_SHIFT - 1 - CO_IMAGE_HALF));
}

LOOPS_INLINE __m512i loops_shift(__m512i high)
{
    return _mm512_slli_epi32(high, CO_IMAGE_HALF + LOOPS_SCALE);
}

LOOPS_INLINE __m512i loops_low(__m512i weights)
{
    return _mm512_slli_epi16(weights, LOOPS_SCALE);
}

/* Add a pair of taps; if it is the only one, the sum is complete in `low`. */
LOOPS_INLINE void loops_add(__m512i *high, __m512i *low, __m512i taps, __m512i more, __m512i less,
                            const size_t pairs)
{
    *high = _mm512_dpwssd_epi32(*high, taps, more);
    *low = _mm512_dpwssd_epi32(pairs == 1 ? loops_shift(*high) : *low, taps, less);
}

/* The sums; byte 3 is the result. */
LOOPS_INLINE __m512i loops_sum(__m512i high, __m512i low, const size_t pairs)
{
    return pairs == 1 ? low : _mm512_add_epi32(loops_shift(high), low);
}

/* Results i to i + 15 of one or three channels. */
LOOPS_INLINE void loops_sixteen(__m512i out[3], const loops_source *from, const co_image_filter *f,
                                size_t i, const size_t planes, const size_t pairs)
{
    const __mmask64 words = 0x5555555555555555; /* the low byte of each 16 bits */
    const __m512i taps = loops_load(f->taps + i);
    const __m512i index = from->pixel == 4 ? _mm512_slli_epi32(taps, 2) : taps;
    const size_t base = f->base[i / CO_IMAGE_BLOCK] * from->pixel;
    __m512i high[3], low[3];

    for (size_t c = 0; c < planes; c++) {
        high[c] = loops_round();
        low[c] = _mm512_setzero_si512();
    }
    for (size_t p = 0; p < pairs; p++) {
        const size_t weight = (p * f->room + i) * CO_IMAGE_PAIR;
        const __m512i more = loops_load(f->high + weight);
        const __m512i less = loops_low(loops_load(f->low_bits + weight));

        for (size_t c = 0; c < planes; c++) {
            const uint8_t *at = from->at[c] + base + 2 * p * from->pixel;
            const __m512i pair = from->wide
                                     ? _mm512_maskz_permutex2var_epi8(words, loops_load(at), index,
                                                                      loops_load(at + 64))
                                     : _mm512_maskz_permutexvar_epi8(words, index, loops_load(at));

            loops_add(&high[c], &low[c], pair, more, less, pairs);
        }
    }
    for (size_t c = 0; c < planes; c++)
        out[c] = loops_sum(high[c], low[c], pairs);
}

/* Byte 3 of each lane of a, and then of b. */
LOOPS_INLINE __m512i loops_bytes(__m512i a, __m512i b)
{
    /* 3 7 11 ... 127, twice */
    const __m512i index =
        _mm512_broadcast_i64x4(_mm256_setr_epi32(0x0f0b0703, 0x1f1b1713, 0x2f2b2723, 0x3f3b3733,
                                                 0x4f4b4743, 0x5f5b5753, 0x6f6b6763, 0x7f7b7773));

    return _mm512_permutex2var_epi8(a, index, b);
}

LOOPS_INLINE void loops_line(uint8_t *out, size_t plane, const loops_source *from,
                             const co_image_filter *f, const size_t planes, const size_t pairs)
{
    for (size_t i = 0; i < f->room; i += CO_IMAGE_STEP) {
        __m512i a[3], b[3];

        loops_sixteen(a, from, f, i, planes, pairs);
        loops_sixteen(b, from, f, i + CO_IMAGE_BLOCK, planes, pairs);
        for (size_t c = 0; c < planes; c++)
            _mm256_storeu_si256((__m256i *)(void *)(out + c * plane + i),
                                _mm512_castsi512_si256(loops_bytes(a[c], b[c])));
    }
}

static void loops_across(uint8_t *out, size_t plane, const uint8_t *row, const co_image_filter *f)
{
    const loops_source narrow = {{row, row + 1, row + 2}, 4, false};
    const loops_source wide = {{row, row + 1, row + 2}, 4, true};

    if (f->spread + 2 > LOOPS_WINDOW || f->pairs > CO_IMAGE_PAIRS)
        co_image_loops_avx2.across(out, plane, row, f);
    else if (f->spread + 2 <= LOOPS_ROW && f->pairs == 1)
        loops_line(out, plane, &narrow, f, 3, 1);
    else if (f->pairs == 1) /* for enlarging */
        loops_line(out, plane, &wide, f, 3, 1);
    else
        loops_line(out, plane, &wide, f, 3, f->pairs);
}

static void loops_across_planes(uint8_t *out, size_t plane, const uint8_t *const row[3],
                                size_t planes, const co_image_filter *f)
{
    const loops_source from = {{row[0], row[1], row[2]}, 1, false};

    if (planes == 1)
        loops_line(out, plane, &from, f, 1, f->pairs);
    else if (f->pairs == 1)
        loops_line(out, plane, &from, f, 3, 1);
    else
        loops_line(out, plane, &from, f, 3, f->pairs);
}

LOOPS_INLINE __m512i loops_pair_of(const co_image_filter *f, const int16_t *half, size_t p,
                                   size_t i)
{
    int32_t pair;

    __builtin_memcpy(&pair, half + (p * f->room + i) * CO_IMAGE_PAIR, sizeof(pair));
    return _mm512_set1_epi32(pair);
}

/* Bytes 16 * h to 16 * h + 15 of a in the lower halves of lanes, and those of b in the upper. */
LOOPS_INLINE __m512i loops_beside(__m512i a, __m512i b, int h)
{
    const __mmask64 words = 0x5555555555555555;
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i index = _mm512_add_epi32(_mm512_or_si512(lane, _mm512_slli_epi32(lane, 16)),
                                           _mm512_set1_epi32((64 + 16 * h) << 16 | 16 * h));

    return _mm512_maskz_permutex2var_epi8(words, a, index, b);
}

/* Up to 64 results (4 parts) or 32 (2 parts), as many as the mask has bits. */
LOOPS_INLINE void loops_down_block(uint8_t *out, __mmask64 mask, const uint8_t *rows, size_t stride,
                                   const co_image_filter *f, size_t i, const size_t pairs,
                                   const int parts)
{
    __m512i high[4], low[4], sum[4];

    for (int h = 0; h < parts; h++) {
        high[h] = loops_round();
        low[h] = _mm512_setzero_si512();
    }
    for (size_t p = 0; p < pairs; p++) {
        const __m512i a = _mm512_maskz_loadu_epi8(mask, rows + 2 * p * stride);
        const __m512i b = _mm512_maskz_loadu_epi8(mask, rows + (2 * p + 1) * stride);
        const __m512i more = loops_pair_of(f, f->high, p, i);
        const __m512i less = loops_low(loops_pair_of(f, f->low_bits, p, i));

        for (int h = 0; h < parts; h++)
            loops_add(&high[h], &low[h], loops_beside(a, b, h), more, less, pairs);
    }
    for (int h = 0; h < parts; h++)
        sum[h] = loops_sum(high[h], low[h], pairs);
    sum[0] = loops_bytes(sum[0], sum[1]);
    if (parts == 4)
        sum[0] = _mm512_mask_mov_epi64(sum[0], 0xf0, loops_bytes(sum[2], sum[3]));
    _mm512_mask_storeu_epi8(out, mask, sum[0]);
}

LOOPS_INLINE void loops_down_pairs(uint8_t *out, const uint8_t *rows, size_t stride,
                                   const co_image_filter *f, size_t i, size_t n, const size_t pairs)
{
    size_t x = 0;

    for (; x + 64 <= n; x += 64)
        loops_down_block(out + x, ~(__mmask64)0, rows + x, stride, f, i, pairs, 4);
    if (n - x > 32)
        loops_down_block(out + x, ~(__mmask64)0 >> (64 - (n - x)), rows + x, stride, f, i, pairs,
                         4);
    else if (x < n)
        loops_down_block(out + x, ~(__mmask64)0 >> (64 - (n - x)), rows + x, stride, f, i, pairs,
                         2);
}

static void loops_down(uint8_t *out, const uint8_t *rows, size_t stride, const co_image_filter *f,
                       size_t i, size_t n)
{
    const uint8_t *from = rows + f->first[i] * stride;

    if (f->pairs > CO_IMAGE_PAIRS)
        co_image_loops_avx2.down(out, rows, stride, f, i, n);
    else if (f->pairs == 1)
        loops_down_pairs(out, from, stride, f, i, n, 1);
    else
        loops_down_pairs(out, from, stride, f, i, n, f->pairs);
}

static void loops_part(uint8_t *out, size_t plane, const uint8_t *row, size_t n)
{
    co_image_loops_avx2.part(out, plane, row, n);
}

static void loops_join(uint8_t *row, const uint8_t *planes[3], size_t step, size_t n)
{
    co_image_loops_avx2.join(row, planes, step, n);
}

const co_image_loops co_image_loops_avx512 = {
    .name = "AVX-512",
    .across = loops_across,
    .across_planes = loops_across_planes,
    .window = LOOPS_PLANE,
    .down = loops_down,
    .part = loops_part,
    .join = loops_join,
};
