/* sample_lanes_avx2.c - the loops of sample_lanes.h for AVX2 and FMA. */
#define LANES             8
#define LANES_TILE_O      3
#define LANES_TILE_V      3
#define LANES_TILE_J      3
#define LANES_SPARSE_ROWS 3
#define LANES_SPOT_COST   10
#define LANES_SPARSE_VECS 3
#define LANES_TABLE       lanes_loops_avx2
#define LANES_NAME        "AVX2"

#include <immintrin.h>

static inline unsigned lanes_nonzero(__m256 v)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NEQ_UQ));
}

typedef __m256i lanes_int;

static inline lanes_int lanes_read_bytes(const unsigned char *from)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
}

static inline void lanes_write_bytes(unsigned char *to, lanes_int v)
{
    const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

    _mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(half, half));
}

#include "kernels/sample_lanes/sample_lanes_impl.h"
