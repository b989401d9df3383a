/*
 * wino_bf16.c - the loops of wino.h for AVX-512 with its instructions for BF16, on tensors of that
 * type: transforms and sums are in floats, and only what is read and written has 16 bits.
 * They flush subnormals. Must not know calls, tensors or plans.
 */
#include "backends/onednn/wino_lines.h"

#define WINO_FLOATS false
#define WINO_TABLE  wino_loops_bf16
#define WINO_NAME   "winograd:avx512_bf16"

typedef uint16_t cell;

LANES_INLINE vec wino_widen(__m256i bits)
{
    return (vec)_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

LANES_INLINE vec wino_take(__mmask16 bits, const cell *from)
{
    return wino_widen(_mm256_maskz_loadu_epi16(bits, from));
}

LANES_INLINE void wino_put(cell *to, vec value)
{
    _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh((__m512)value));
}

LANES_INLINE vec wino_weight(vec value)
{
    return wino_widen((__m256i)_mm512_cvtneps_pbh((__m512)value));
}

#include "backends/onednn/wino_images.h"
