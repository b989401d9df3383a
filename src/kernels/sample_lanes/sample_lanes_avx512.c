/* sample_lanes_avx512.c - the loops of sample_lanes.h for AVX-512. */
#define LANES             16
#define LANES_TILE_O      5
#define LANES_TILE_V      4
#define LANES_TILE_J      5
#define LANES_SPARSE_ROWS 5
#define LANES_SPOT_COST   4
#define LANES_SPARSE_VECS 5
#define LANES_SQUARE_VECS 4
#define LANES_ROWS_TILES  4
#define LANES_ROWS_POINTS 2
#define LANES_TABLE       lanes_loops_avx512
#define LANES_NAME        "AVX-512"

#include <immintrin.h>

static inline unsigned lanes_nonzero(__m512 v)
{
    return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}

typedef __m512i lanes_int;

static inline lanes_int lanes_read_bytes(const unsigned char *from)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
}

static inline void lanes_write_bytes(unsigned char *to, lanes_int v)
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8(v));
}

#define LANES_SQUEEZES 0
#define LANES_PICKS

static inline __mmask16 lanes_bits(const unsigned char *from, int bits)
{
    return _mm_test_epi8_mask(_mm_loadu_si128((const __m128i *)(const void *)from),
                              _mm_set1_epi8((char)bits));
}

static inline __mmask16 lanes_bytes(const unsigned char *from, int value)
{
    return _mm_cmpeq_epi8_mask(_mm_loadu_si128((const __m128i *)(const void *)from),
                               _mm_set1_epi8((char)value));
}

static inline void lanes_squeeze(float *to, unsigned mask, __m512 v)
{
    _mm512_storeu_ps(to, _mm512_maskz_compress_ps((__mmask16)mask, v));
}

#include "kernels/sample_lanes/sample_lanes_impl.h"
