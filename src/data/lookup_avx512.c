/*
 * lookup_avx512.c - bytes to floats through a table that stays in registers.
 *
 * The table is taken apart into its first, second, third and fourth bytes, 256 of each in four
 * registers; 64 values are looked up in each and put together again.
 */
#include <immintrin.h>

#include "data/lookup.h"

#define LOOKUP_STEP 64

#define LOOKUP_INLINE static inline __attribute__((always_inline))

/* Byte `plane` of each entry. */
static void lookup_split(__m512i out[4], const float *table, unsigned plane)
{
    for (int part = 0; part < 4; part++, table += 64) {
        __m128i quarter[4];

        for (int q = 0; q < 4; q++) {
            const __m512i words = _mm512_loadu_si512(table + 16 * q);

            quarter[q] =
                _mm512_cvtepi32_epi8(_mm512_srl_epi32(words, _mm_cvtsi32_si128((int)(8 * plane))));
        }
        out[part] =
            _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(quarter[1], quarter[0])),
                               _mm256_set_m128i(quarter[3], quarter[2]), 1);
    }
}

/* Entries below 128 come from the first two registers, the others from the last two. */
LOOKUP_INLINE __m512i lookup_bytes(const __m512i part[4], __m512i index, __mmask64 upper)
{
    const __m512i low = _mm512_permutex2var_epi8(part[0], index, part[1]);

    return _mm512_mask_mov_epi8(low, upper, _mm512_permutex2var_epi8(part[2], index, part[3]));
}

void co_lookup_avx512(float *out, const uint8_t *in, size_t n, const float table[CO_LOOKUP_LEVELS])
{
    /* Interleaving works in lanes of 128 bits: so that results come out in order, group l of four
       values goes to lane l / 4. */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i part[4][4];
    size_t i = 0;

    for (unsigned plane = 0; plane < 4 && n >= LOOKUP_STEP; plane++)
        lookup_split(part[plane], table, plane);
    for (; i + LOOKUP_STEP <= n; i += LOOKUP_STEP) {
        const __m512i index = _mm512_permutexvar_epi32(order, _mm512_loadu_si512(in + i));
        const __mmask64 upper = _mm512_movepi8_mask(index);
        const __m512i a = lookup_bytes(part[0], index, upper);
        const __m512i b = lookup_bytes(part[1], index, upper);
        const __m512i c = lookup_bytes(part[2], index, upper);
        const __m512i d = lookup_bytes(part[3], index, upper);
        const __m512i ab[2] = {_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)};
        const __m512i cd[2] = {_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d)};

        for (int h = 0; h < 2; h++) {
            _mm512_storeu_si512(out + i + 32 * h, _mm512_unpacklo_epi16(ab[h], cd[h]));
            _mm512_storeu_si512(out + i + 32 * h + 16, _mm512_unpackhi_epi16(ab[h], cd[h]));
        }
    }
    co_lookup_plain(out + i, in + i, n - i, table);
}
