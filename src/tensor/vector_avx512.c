/*
 * vector_avx512.c - the loops of ext/vector.h with vectors of 512 bits: AVX-512.
 *
 * It can compress the lanes of a mask. Into a register: a compressing store is slow on some CPUs.
 */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

static size_t vector_avx512_find_large(uint32_t *out, const float *x, size_t n, uint32_t bound,
                                       size_t most);

#define VECTOR_TABLE      co_vector_avx512
#define VECTOR_NAME       "AVX-512"
#define VECTOR_HALF       co_half_avx512
#define VECTOR_FIND_LARGE vector_avx512_find_large

#include "tensor/vector_impl.h"

static size_t vector_avx512_find_large(uint32_t *out, const float *x, size_t n, uint32_t bound,
                                       size_t most)
{
    const __m512i size = _mm512_set1_epi32(0x7fffffff), least = _mm512_set1_epi32((int)bound);
    const __m512i step = _mm512_set1_epi32(VECTOR_LANES);
    __m512i at = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    size_t found = 0, i = 0;

    for (; i + VECTOR_LANES <= n && found <= most; i += VECTOR_LANES) {
        const __m512i key = _mm512_and_si512(_mm512_loadu_si512(x + i), size);
        const __mmask16 mask = _mm512_cmpge_epu32_mask(key, least);

        _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi32(mask, at));
        found += (size_t)__builtin_popcount(mask);
        at = _mm512_add_epi32(at, step);
    }
    if (found <= most)
        found += inner_find_some(out + found, x, i, n, bound);
    return found;
}
