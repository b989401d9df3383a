/* dense_avx2.c - the loops of dense.h for AVX2. */
#include <immintrin.h>

#define LANES       8
#define DENSE_N     3
#define DENSE_ROWS  6
#define DENSE_TABLE dense_loops_avx2
#define DENSE_NAME  "dense:avx2"

#include "backends/onednn/dense.h"

typedef float vec __attribute__((vector_size(4 * LANES), may_alias));
typedef float loose_vec __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));

static inline __m256i dense_mask(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline vec dense_take(const float *from, int64_t n)
{
    return (vec)_mm256_maskload_ps(from, dense_mask(n));
}

static inline void dense_put(float *to, vec v, int64_t n)
{
    _mm256_maskstore_ps(to, dense_mask(n), (__m256)v);
}

static inline vec dense_splat(const float *from)
{
    return (vec)_mm256_broadcast_ss(from);
}

static inline __m128 dense_join(const vec *v)
{
    const __m256 low = _mm256_hadd_ps((__m256)v[0], (__m256)v[1]);
    const __m256 high = _mm256_hadd_ps((__m256)v[2], (__m256)v[3]);
    const __m256 all = _mm256_hadd_ps(low, high);

    return _mm256_castps256_ps128(all) + _mm256_extractf128_ps(all, 1);
}

#include "backends/onednn/dense_impl.h"
