/* gemm_avx2.c - the loops of gemm.h for AVX2. */
#define LANES      8
#define GEMM_N     3
#define GEMM_ROWS  6
#define GEMM_TABLE gemm_loops_avx2
#define GEMM_NAME  "dense:avx2"

#include "kernels/simd.h"

typedef __m128 gemm_four;

static inline gemm_four gemm_join(const vec *v)
{
    const __m256 low = _mm256_hadd_ps((__m256)v[0], (__m256)v[1]);
    const __m256 high = _mm256_hadd_ps((__m256)v[2], (__m256)v[3]);
    const __m256 all = _mm256_hadd_ps(low, high);

    return _mm256_castps256_ps128(all) + _mm256_extractf128_ps(all, 1);
}

#include "kernels/gemm/gemm_impl.h"
