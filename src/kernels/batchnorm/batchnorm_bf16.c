/* batchnorm_bf16.c - batch norm's loops on 16 channels of BF16 at once, for AVX-512 with its
   instructions for BF16. They flush subnormals. */
#define LANES      16
#define NORM_TABLE norm_loops_bf16

#include "kernels/batchnorm/batchnorm.h"
#include "kernels/simd.h"

typedef uint16_t cell;

static inline vec norm_load(const cell *from)
{
    const __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)from);

    return (vec)_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

static inline void norm_store(cell *to, vec value)
{
    _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh((__m512)value));
}

#include "kernels/batchnorm/batchnorm_mask512.h"

#include "kernels/batchnorm/batchnorm_impl.h"
