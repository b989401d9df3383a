/*
 * half16.h - vectors of 16 numbers of BF16, as floats: for files that are compiled for AVX-512 with
 * BF16, which define LANES as 16.
 */
#ifndef CO_KERNELS_HALF16_H
#define CO_KERNELS_HALF16_H

#include "kernels/simd.h"

SIMD_INLINE vec half16_load(const uint16_t *from)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));

    return (vec)_mm512_slli_epi32(wide, 16);
}

/* To nearest, ties to even. */
SIMD_INLINE __m256i half16_round(vec value)
{
    return (__m256i)_mm512_cvtneps_pbh((__m512)value);
}

SIMD_INLINE void half16_store(uint16_t *to, vec value)
{
    _mm256_storeu_si256((__m256i *)to, half16_round(value));
}

#endif
