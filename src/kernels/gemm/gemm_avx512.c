/* gemm_avx512.c - the loops of gemm.h for AVX-512. */
#define LANES      16
#define GEMM_N     6
#define GEMM_ROWS  14
#define GEMM_TABLE gemm_loops_avx512
#define GEMM_NAME  "dense:avx512"

#include "kernels/simd.h"

/* Within each quarter: (a0 + a1, b0 + b1, a2 + a3, b2 + b3) where those are a's and b's. */
static inline __m512 gemm_pair(vec a, vec b)
{
    return _mm512_unpacklo_ps((__m512)a, (__m512)b) + _mm512_unpackhi_ps((__m512)a, (__m512)b);
}

typedef __m128 gemm_four;

static inline gemm_four gemm_join(const vec *v)
{
    const __m512d low = (__m512d)gemm_pair(v[0], v[1]), high = (__m512d)gemm_pair(v[2], v[3]);
    const __m512 all =
        (__m512)_mm512_unpacklo_pd(low, high) + (__m512)_mm512_unpackhi_pd(low, high);
    const __m256 half = _mm512_castps512_ps256(all) + _mm512_extractf32x8_ps(all, 1);

    return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
}

#include "kernels/gemm/gemm_impl.h"
