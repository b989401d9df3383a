/*
 * resample_loops_avx2.c - the inner loops of resampling for AVX2.
 *
 * Two taps at a time by multiply-and-add of 16-bit numbers: a 22-bit weight is split into two
 * halves of 11 bits, so the sums are those of 32-bit arithmetic.
 */
#include <immintrin.h>
#include <string.h>

#include "image/internal.h"

#define LOOPS_STEP 8

#define LOOPS_INLINE static inline __attribute__((always_inline))

LOOPS_INLINE __m128i loops_load(const void *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

LOOPS_INLINE __m256i loops_load32(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

/* Bytes of two 4-byte pixels to pairs of words: R0 R1 G0 G1 B0 B1 X0 X1. */
LOOPS_INLINE __m256i loops_pairs(const uint8_t *a, const uint8_t *b)
{
    const __m256i order = _mm256_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1,
                                           0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);

    return _mm256_shuffle_epi8(_mm256_set_m128i(loops_load(b), loops_load(a)), order);
}

/* The pair of weights of results i and i + 1, each repeated four times. */
LOOPS_INLINE __m256i loops_weights(const int16_t *at)
{
    int64_t both;

    memcpy(&both, at, sizeof(both));
    return _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(both),
                                       _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

/* Pixels i and i + 1 of the result as 32-bit sums. */
LOOPS_INLINE __m256i loops_two(const uint8_t *row, const co_image_filter *f, size_t i,
                               const size_t pairs)
{
    const uint8_t *a = row + 4 * (size_t)f->first[i], *b = row + 4 * (size_t)f->first[i + 1];
    __m256i high = _mm256_setzero_si256(), low = _mm256_set1_epi32(1 << (CO_IMAGE_SHIFT - 1));

    for (size_t p = 0; p < pairs; p++) {
        const __m256i pixels = loops_pairs(a + 8 * p, b + 8 * p);
        const size_t at = (p * f->room + i) * CO_IMAGE_PAIR;

        high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, loops_weights(f->high + at)));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, loops_weights(f->low_bits + at)));
    }
    return _mm256_srai_epi32(_mm256_add_epi32(low, _mm256_slli_epi32(high, CO_IMAGE_HALF)),
                             CO_IMAGE_SHIFT);
}

LOOPS_INLINE void loops_across_pairs(uint8_t *out, size_t plane, const uint8_t *row,
                                     const co_image_filter *f, const size_t pairs)
{
    const __m256i part = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0,
                                          4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);

    for (size_t i = 0; i < f->room; i += LOOPS_STEP) {
        const __m256i a =
            _mm256_packs_epi32(loops_two(row, f, i, pairs), loops_two(row, f, i + 2, pairs));
        const __m256i b =
            _mm256_packs_epi32(loops_two(row, f, i + 4, pairs), loops_two(row, f, i + 6, pairs));
        /* pixels 0 2 4 6 | 1 3 5 7, and then their reds, greens and blues */
        const __m256i all = _mm256_shuffle_epi8(_mm256_packus_epi16(a, b), part);
        const __m128i even = _mm256_castsi256_si128(all), odd = _mm256_extracti128_si256(all, 1);
        const __m128i first = _mm_unpacklo_epi8(even, odd), last = _mm_unpackhi_epi8(even, odd);

        _mm_storel_epi64((__m128i *)(void *)(out + i), first);
        _mm_storel_epi64((__m128i *)(void *)(out + plane + i), _mm_unpackhi_epi64(first, first));
        _mm_storel_epi64((__m128i *)(void *)(out + 2 * plane + i), last);
    }
}

/* A loop of its own for two taps, which enlarging needs. */
static void loops_across(uint8_t *out, size_t plane, const uint8_t *row, const co_image_filter *f)
{
    if (f->pairs == 1)
        loops_across_pairs(out, plane, row, f, 1);
    else
        loops_across_pairs(out, plane, row, f, f->pairs);
}

LOOPS_INLINE __m256i loops_load16(const uint8_t *at)
{
    return _mm256_cvtepu8_epi16(loops_load(at));
}

LOOPS_INLINE __m256i loops_pair_of(const co_image_filter *f, const int16_t *half, size_t p,
                                   size_t i)
{
    int32_t pair;

    memcpy(&pair, half + (p * f->room + i) * CO_IMAGE_PAIR, sizeof(pair));
    return _mm256_set1_epi32(pair);
}

LOOPS_INLINE __m256i loops_sum(__m256i high, __m256i low)
{
    const __m256i round = _mm256_set1_epi32(1 << (CO_IMAGE_SHIFT - 1));
    const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, CO_IMAGE_HALF), low);

    return _mm256_srai_epi32(_mm256_add_epi32(sum, round), CO_IMAGE_SHIFT);
}

/* 16 results at once. */
LOOPS_INLINE void loops_down16(uint8_t *out, const uint8_t *rows, size_t stride,
                               const co_image_filter *f, size_t i, const size_t pairs)
{
    __m256i high[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()}, low[2] = {high[0], high[0]};
    __m256i words;

    for (size_t p = 0; p < pairs; p++) {
        const __m256i a = loops_load16(rows + 2 * p * stride);
        const __m256i b = loops_load16(rows + (2 * p + 1) * stride);
        const __m256i pair[2] = {_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};
        const __m256i more = loops_pair_of(f, f->high, p, i);
        const __m256i less = loops_pair_of(f, f->low_bits, p, i);

        for (int h = 0; h < 2; h++) {
            high[h] = _mm256_add_epi32(high[h], _mm256_madd_epi16(pair[h], more));
            low[h] = _mm256_add_epi32(low[h], _mm256_madd_epi16(pair[h], less));
        }
    }
    words = _mm256_packs_epi32(loops_sum(high[0], low[0]), loops_sum(high[1], low[1]));
    words = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0x08);
    _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(words));
}

LOOPS_INLINE void loops_down_pairs(uint8_t *out, const uint8_t *rows, size_t stride,
                                   const co_image_filter *f, size_t i, size_t n, const size_t pairs)
{
    size_t x = 0;

    for (; x + 16 <= n; x += 16)
        loops_down16(out + x, rows + x, stride, f, i, pairs);
    if (x < n) /* the last 16, some of them again */
        loops_down16(out + n - 16, rows + n - 16, stride, f, i, pairs);
}

static void loops_down(uint8_t *out, const uint8_t *rows, size_t stride, const co_image_filter *f,
                       size_t i, size_t n)
{
    const uint8_t *from = rows + f->first[i] * stride;

    if (n < 16)
        co_image_loops_basic.down(out, rows, stride, f, i, n);
    else if (f->pairs == 1)
        loops_down_pairs(out, from, stride, f, i, n, 1);
    else
        loops_down_pairs(out, from, stride, f, i, n, f->pairs);
}

static void loops_part(uint8_t *out, size_t plane, const uint8_t *row, size_t n)
{
    const __m256i part = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0,
                                          4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);

    for (size_t i = 0; i < n; i += LOOPS_STEP) {
        const __m256i all = _mm256_shuffle_epi8(loops_load32(row + 4 * i), part);
        const __m128i left = _mm256_castsi256_si128(all), right = _mm256_extracti128_si256(all, 1);
        const __m128i first = _mm_unpacklo_epi32(left, right);

        _mm_storel_epi64((__m128i *)(void *)(out + i), first);
        _mm_storel_epi64((__m128i *)(void *)(out + plane + i), _mm_unpackhi_epi64(first, first));
        _mm_storel_epi64((__m128i *)(void *)(out + 2 * plane + i), _mm_unpackhi_epi32(left, right));
    }
}

static void loops_join(uint8_t *row, const uint8_t *planes[3], size_t step, size_t n)
{
    size_t i = 0;

    for (; step == 1 && i + 16 <= n; i += 16) {
        const __m128i red = loops_load(planes[0] + i), green = loops_load(planes[1] + i);
        const __m128i blue = loops_load(planes[2] + i), none = _mm_setzero_si128();
        const __m128i rg[2] = {_mm_unpacklo_epi8(red, green), _mm_unpackhi_epi8(red, green)};
        const __m128i b[2] = {_mm_unpacklo_epi8(blue, none), _mm_unpackhi_epi8(blue, none)};
        __m128i *out = (__m128i *)(void *)(row + 4 * i);

        for (int h = 0; h < 2; h++) {
            _mm_storeu_si128(out + 2 * h, _mm_unpacklo_epi16(rg[h], b[h]));
            _mm_storeu_si128(out + 2 * h + 1, _mm_unpackhi_epi16(rg[h], b[h]));
        }
    }
    if (i < n) {
        const uint8_t *rest[3] = {planes[0] + i * step, planes[1] + i * step, planes[2] + i * step};

        co_image_loops_basic.join(row + 4 * i, rest, step, n - i);
    }
}

const co_image_loops co_image_loops_avx2 = {
    .name = "AVX2",
    .across = loops_across,
    .down = loops_down,
    .part = loops_part,
    .join = loops_join,
};
