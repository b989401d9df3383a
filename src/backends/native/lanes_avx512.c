/* lanes_avx512.c - the loops of native.h for AVX-512. */
#define LANES             16
#define LANES_TILE_O      5
#define LANES_TILE_V      4
#define LANES_TILE_J      5
#define LANES_SPARSE_ROWS 5
#define LANES_SPARSE_VECS 5
#define LANES_TABLE       native_lanes_avx512
#define LANES_NAME        "AVX-512"

#include <immintrin.h>

static inline unsigned lanes_nonzero(__m512 v)
{
    return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}

#include "backends/native/lanes_impl.h"
