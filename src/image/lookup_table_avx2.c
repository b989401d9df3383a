/*
 * lookup_table_avx2.c - bytes to floats by the formula of the table.
 *
 * AVX2 cannot look up in a table of 256 bytes, so floats are recomputed: a division is a product
 * with the inverse, which is stored as the sum of two floats. Only for tables for which this gives
 * the same bits.
 */
#include <immintrin.h>

#include "image/lookup_table.h"

#define LOOKUP_STEP 8

#define LOOKUP_INLINE static inline __attribute__((always_inline))

LOOKUP_INLINE __m256 lookup_divide(__m256 x, const float inverse[2])
{
    const __m256 small = _mm256_mul_ps(x, _mm256_set1_ps(inverse[1]));

    return _mm256_fmadd_ps(x, _mm256_set1_ps(inverse[0]), small);
}

/* Converts whole vectors; returns the number of values. */
LOOKUP_INLINE size_t lookup_vectors(float *out, const uint8_t *in, size_t n,
                                    const co_lookup_formula *f, const bool stream)
{
    size_t i = 0;

    for (; i + LOOKUP_STEP <= n; i += LOOKUP_STEP) {
        const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(in + i));
        const __m256 level = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
        const __m256 part = lookup_divide(level, f->inverse_of_255);
        const __m256 from_mean = _mm256_sub_ps(part, _mm256_set1_ps(f->mean));
        const __m256 value = lookup_divide(from_mean, f->inverse_of_std);

        if (stream)
            _mm256_stream_ps(out + i, value);
        else
            _mm256_storeu_ps(out + i, value);
    }
    return i;
}

static void lookup_look(float *out, const uint8_t *in, size_t n, const co_lookup_table *table)
{
    const size_t i = lookup_vectors(out, in, n, &table->formula, false);

    co_lookup_basic.look(out + i, in + i, n - i, table);
}

static void lookup_stream(float *out, const uint8_t *in, size_t n, const co_lookup_table *table)
{
    size_t i = 0;

    if ((uintptr_t)out % sizeof(__m256) == 0)
        i = lookup_vectors(out, in, n, &table->formula, true);
    lookup_look(out + i, in + i, n - i, table);
}

const co_lookup_loops co_lookup_avx2 = {
    .name = "AVX2",
    .by_formula = true,
    .look = lookup_look,
    .stream = lookup_stream,
};
