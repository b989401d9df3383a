/*
 * winograd_bf16.h - the loops of winograd.h for AVX-512 with its instructions for BF16, on
 * tensors of that type, for a file that defines WINOGRAD_TILE, WINOGRAD_TABLE and WINOGRAD_NAME.
 * Transforms and sums are in floats, and only what is read and written has 16 bits. They flush
 * subnormals. Independent of calls, tensors and plans.
 */
#include "kernels/winograd/winograd_lines.h"

#define WINOGRAD_FLOATS false

typedef uint16_t cell;

SIMD_INLINE vec winograd_widen(__m256i bits)
{
    return (vec)_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

SIMD_INLINE vec winograd_take(__mmask16 bits, const cell *from)
{
    return winograd_widen(_mm256_maskz_loadu_epi16(bits, from));
}

SIMD_INLINE void winograd_put(cell *to, vec value)
{
    _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh((__m512)value));
}

SIMD_INLINE vec winograd_weight(vec value)
{
    return winograd_widen((__m256i)_mm512_cvtneps_pbh((__m512)value));
}

#include "kernels/winograd/winograd_images.h"
