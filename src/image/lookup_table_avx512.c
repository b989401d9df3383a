/*
 * lookup_table_avx512.c - bytes to floats through a table in registers.
 *
 * The table is split into four byte tables of 256 entries, each in four registers; 64 bytes are
 * looked up in each and put together again.
 */
#include <immintrin.h>
#include <stdbool.h>

#include "image/lookup_table.h"

#define LOOKUP_STEP 64

#define LOOKUP_INLINE static inline __attribute__((always_inline))

/* Entries below 128 come from the first two registers, the others from the last two. */
LOOKUP_INLINE __m512i lookup_bytes(const __m512i part[4], __m512i index, __mmask64 upper)
{
    const __m512i low = _mm512_permutex2var_epi8(part[0], index, part[1]);

    return _mm512_mask_mov_epi8(low, upper, _mm512_permutex2var_epi8(part[2], index, part[3]));
}

LOOKUP_INLINE void lookup_put(float *out, __m512i values, const bool stream)
{
    if (stream)
        _mm512_stream_si512((__m512i *)(void *)out, values);
    else
        _mm512_storeu_si512(out, values);
}

/* Converts whole vectors; returns the number of values. */
LOOKUP_INLINE size_t lookup_vectors(float *out, const uint8_t *in, size_t n,
                                    const co_lookup_table *table, const bool stream)
{
    /* Unpacking interleaves within 128-bit lanes: this order of the input gives results in
       sequence. */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i part[4][4];
    size_t i = 0;

    for (int k = 0; k < 4; k++)
        for (int q = 0; q < 4; q++)
            part[k][q] = _mm512_loadu_si512(table->byte[k] + 64 * q);
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
            lookup_put(out + i + 32 * h, _mm512_unpacklo_epi16(ab[h], cd[h]), stream);
            lookup_put(out + i + 32 * h + 16, _mm512_unpackhi_epi16(ab[h], cd[h]), stream);
        }
    }
    return i;
}

static void lookup_look(float *out, const uint8_t *in, size_t n, const co_lookup_table *table)
{
    const size_t i = lookup_vectors(out, in, n, table, false);

    co_lookup_basic.look(out + i, in + i, n - i, table);
}

static void lookup_stream(float *out, const uint8_t *in, size_t n, const co_lookup_table *table)
{
    size_t i = 0;

    if ((uintptr_t)out % sizeof(__m512i) == 0)
        i = lookup_vectors(out, in, n, table, true);
    lookup_look(out + i, in + i, n - i, table);
}

const co_lookup_loops co_lookup_avx512 = {
    .name = "AVX-512",
    .look = lookup_look,
    .stream = lookup_stream,
};
