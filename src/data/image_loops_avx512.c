/*
 * image_loops_avx512.c - the inner loops of resampling for AVX-512 with VBMI and VNNI.
 *
 * As for AVX2, but 16 results at once, each a 32-bit lane: a permutation of bytes brings the two
 * taps of each result side by side, whatever the filter's step. Sums are kept four times as large,
 * so that the result is their uppermost byte.
 */
#include <immintrin.h>

#include "data/image_internal.h"

#define LOOPS_STEP   16
#define LOOPS_WINDOW 32 /* 4-byte pixels that a permutation of two registers reaches */
#define LOOPS_SCALE  2  /* the sums have 2^30 for one */
/* More taps may exceed 255 by rounding of the weights alone. */
#define LOOPS_PAIRS 4096

#define LOOPS_INLINE static inline __attribute__((always_inline))

LOOPS_INLINE __m512i loops_load(const void *at)
{
    return _mm512_loadu_si512(at);
}

LOOPS_INLINE __m512i loops_round(void)
{
    return _mm512_set1_epi32(1 << (CO_IMAGE_SHIFT - 1 + LOOPS_SCALE));
}

/* The sums of 16 results, of which byte 3 counts. */
LOOPS_INLINE __m512i loops_sum(__m512i high, __m512i low)
{
    return _mm512_add_epi32(_mm512_slli_epi32(high, CO_IMAGE_HALF + LOOPS_SCALE), low);
}

LOOPS_INLINE __m512i loops_low(__m512i weights)
{
    return _mm512_slli_epi16(weights, LOOPS_SCALE);
}

/* Three channels of results i to i + 15. */
LOOPS_INLINE void loops_sixteen(__m512i out[3], const uint8_t *row, const co_image_filter *f,
                                size_t i, const size_t pairs)
{
    const __mmask64 words = 0x5555555555555555;
    const uint32_t start = f->first[i], end = f->first[i + LOOPS_STEP - 1];
    const uint32_t least = start < end ? start : end; /* a mirrored filter goes backwards */
    const __m512i from = _mm512_set1_epi32((int)least);
    /* Byte offsets of red in the two taps, as 16-bit numbers. */
    const __m512i step = _mm512_slli_epi32(_mm512_sub_epi32(loops_load(f->first + i), from), 2);
    const __m512i red = _mm512_add_epi32(_mm512_or_si512(step, _mm512_slli_epi32(step, 16)),
                                         _mm512_set1_epi32(4 << 16));
    const uint8_t *at = row + 4 * (size_t)least;
    __m512i high[3], low[3];

    for (int c = 0; c < 3; c++) {
        high[c] = _mm512_setzero_si512();
        low[c] = loops_round();
    }
    for (size_t p = 0; p < pairs; p++, at += 8) {
        const size_t weight = (p * f->room + i) * CO_IMAGE_PAIR;
        const __m512i more = loops_load(f->high + weight);
        const __m512i less = loops_low(loops_load(f->low_bits + weight));
        const __m512i a = loops_load(at), b = loops_load(at + 64);

        for (int c = 0; c < 3; c++) {
            const __m512i index = _mm512_add_epi16(red, _mm512_set1_epi16((short)c));
            const __m512i taps = _mm512_maskz_permutex2var_epi8(words, a, index, b);

            high[c] = _mm512_dpwssd_epi32(high[c], taps, more);
            low[c] = _mm512_dpwssd_epi32(low[c], taps, less);
        }
    }
    for (int c = 0; c < 3; c++)
        out[c] = loops_sum(high[c], low[c]);
}

/* Byte 3 of the lanes of a, and then of b. */
LOOPS_INLINE __m256i loops_bytes(__m512i a, __m512i b)
{
    /* 3 7 11 ... 127 */
    const __m256i index = _mm256_setr_epi32(0x0f0b0703, 0x1f1b1713, 0x2f2b2723, 0x3f3b3733,
                                            0x4f4b4743, 0x5f5b5753, 0x6f6b6763, 0x7f7b7773);

    return _mm512_castsi512_si256(_mm512_permutex2var_epi8(a, _mm512_castsi256_si512(index), b));
}

LOOPS_INLINE void loops_across_pairs(uint8_t *out, size_t plane, const uint8_t *row,
                                     const co_image_filter *f, const size_t pairs)
{
    for (size_t i = 0; i < f->room; i += CO_IMAGE_STEP) {
        __m512i a[3], b[3];

        loops_sixteen(a, row, f, i, pairs);
        loops_sixteen(b, row, f, i + LOOPS_STEP, pairs);
        for (size_t c = 0; c < 3; c++)
            _mm256_storeu_si256((__m256i *)(void *)(out + c * plane + i), loops_bytes(a[c], b[c]));
    }
}

static void loops_across(uint8_t *out, size_t plane, const uint8_t *row, const co_image_filter *f)
{
    if (f->spread + 2 > LOOPS_WINDOW || f->pairs > LOOPS_PAIRS)
        co_image_loops_avx2.across(out, plane, row, f);
    else if (f->pairs == 1) /* what enlarging takes */
        loops_across_pairs(out, plane, row, f, 1);
    else
        loops_across_pairs(out, plane, row, f, f->pairs);
}

LOOPS_INLINE __m512i loops_pair_of(const co_image_filter *f, const int16_t *half, size_t p,
                                   size_t i)
{
    int32_t pair;

    __builtin_memcpy(&pair, half + (p * f->room + i) * CO_IMAGE_PAIR, sizeof(pair));
    return _mm512_set1_epi32(pair);
}

/* 64 results, or as many as the mask says. */
LOOPS_INLINE void loops_down64(uint8_t *out, __mmask64 mask, const uint8_t *rows, size_t stride,
                               const co_image_filter *f, size_t i, const size_t pairs)
{
    const __m512i none = _mm512_setzero_si512();
    __m512i high[4] = {none, none, none, none};
    __m512i low[4] = {loops_round(), loops_round(), loops_round(), loops_round()};
    __m512i half[2];

    for (size_t p = 0; p < pairs; p++) {
        const __m512i a = _mm512_maskz_loadu_epi8(mask, rows + 2 * p * stride);
        const __m512i b = _mm512_maskz_loadu_epi8(mask, rows + (2 * p + 1) * stride);
        const __m512i more = loops_pair_of(f, f->high, p, i);
        const __m512i less = loops_low(loops_pair_of(f, f->low_bits, p, i));
        /* within each 128 bits: results 0 to 7, then 8 to 15, as bytes a b */
        const __m512i ab[2] = {_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)};

        for (int h = 0; h < 4; h++) {
            const __m512i taps = h % 2 ? _mm512_unpackhi_epi8(ab[h / 2], none)
                                       : _mm512_unpacklo_epi8(ab[h / 2], none);

            high[h] = _mm512_dpwssd_epi32(high[h], taps, more);
            low[h] = _mm512_dpwssd_epi32(low[h], taps, less);
        }
    }
    for (int h = 0; h < 4; h += 2)
        half[h / 2] = _mm512_packs_epi32(_mm512_srli_epi32(loops_sum(high[h], low[h]), 24),
                                         _mm512_srli_epi32(loops_sum(high[h + 1], low[h + 1]), 24));
    _mm512_mask_storeu_epi8(out, mask, _mm512_packus_epi16(half[0], half[1]));
}

LOOPS_INLINE void loops_down_pairs(uint8_t *out, const uint8_t *rows, size_t stride,
                                   const co_image_filter *f, size_t i, size_t n, const size_t pairs)
{
    size_t x = 0;

    for (; x + 64 <= n; x += 64)
        loops_down64(out + x, ~(__mmask64)0, rows + x, stride, f, i, pairs);
    if (x < n)
        loops_down64(out + x, ~(__mmask64)0 >> (64 - (n - x)), rows + x, stride, f, i, pairs);
}

static void loops_down(uint8_t *out, const uint8_t *rows, size_t stride, const co_image_filter *f,
                       size_t i, size_t n)
{
    const uint8_t *from = rows + f->first[i] * stride;

    if (f->pairs > LOOPS_PAIRS)
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
    .down = loops_down,
    .part = loops_part,
    .join = loops_join,
};
