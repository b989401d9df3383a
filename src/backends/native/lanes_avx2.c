/* lanes_avx2.c - the loops of native.h for AVX2 and FMA. */
#define LANES             8
#define LANES_TILE_O      3
#define LANES_TILE_V      3
#define LANES_TILE_J      3
#define LANES_SPARSE_ROWS 3
#define LANES_SPARSE_VECS 3
#define LANES_TABLE       native_lanes_avx2
#define LANES_NAME        "AVX2"

#include <immintrin.h>

static inline unsigned lanes_nonzero(__m256 v)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NEQ_UQ));
}

#include "backends/native/lanes_impl.h"
