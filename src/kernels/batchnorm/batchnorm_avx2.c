/* batchnorm_avx2.c - batch norm's loops on 8 channels at once, for AVX2. */
#define LANES      8
#define NORM_TABLE norm_loops_avx2

#include "kernels/batchnorm/batchnorm.h"
#include "kernels/cell.h"

static inline uint16_t norm_is_kept(vec v)
{
    const __m256 kept = _mm256_cmp_ps((__m256)v, _mm256_setzero_ps(), _CMP_NLE_UQ);

    return (uint16_t)_mm256_movemask_ps(kept);
}

static inline vec norm_keep(vec v, uint16_t bits)
{
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_and_si256(_mm256_set1_epi32(bits), lane);

    return (vec)_mm256_and_ps((__m256)v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lane)));
}

#include "kernels/batchnorm/batchnorm_impl.h"
