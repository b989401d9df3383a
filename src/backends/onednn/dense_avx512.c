/* dense_avx512.c - the loops of dense.h for AVX-512. */
#include <immintrin.h>

#define LANES       16
#define DENSE_N     6
#define DENSE_ROWS  14
#define DENSE_TABLE dense_loops_avx512
#define DENSE_NAME  "dense:avx512"

#include "backends/onednn/dense.h"

typedef float vec __attribute__((vector_size(4 * LANES), may_alias));
typedef float loose_vec __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));

static inline __mmask16 dense_mask(int64_t n)
{
    return (__mmask16)((1u << n) - 1);
}

static inline vec dense_take(const float *from, int64_t n)
{
    return (vec)_mm512_maskz_loadu_ps(dense_mask(n), from);
}

static inline void dense_put(float *to, vec v, int64_t n)
{
    _mm512_mask_storeu_ps(to, dense_mask(n), (__m512)v);
}

static inline vec dense_splat(const float *from)
{
    return (vec)_mm512_set1_ps(*from);
}

/* Within each quarter: (a0 + a1, b0 + b1, a2 + a3, b2 + b3) where those are a's and b's. */
static inline __m512 dense_pair(vec a, vec b)
{
    return _mm512_unpacklo_ps((__m512)a, (__m512)b) + _mm512_unpackhi_ps((__m512)a, (__m512)b);
}

static inline __m128 dense_join(const vec *v)
{
    const __m512d low = (__m512d)dense_pair(v[0], v[1]), high = (__m512d)dense_pair(v[2], v[3]);
    const __m512 all =
        (__m512)_mm512_unpacklo_pd(low, high) + (__m512)_mm512_unpackhi_pd(low, high);
    const __m256 half = _mm512_castps512_ps256(all) + _mm512_extractf32x8_ps(all, 1);

    return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
}

#include "backends/onednn/dense_impl.h"
