/* sample_lanes_avx2.c - the loops of sample_lanes.h for AVX2 and FMA. */
#define LANES             8
#define LANES_TILE_O      3
#define LANES_TILE_V      3
#define LANES_TILE_J      3
#define LANES_SPARSE_ROWS 3
#define LANES_SPOT_COST   4
#define LANES_SPARSE_VECS 3
#define LANES_SQUARE_VECS 2
#define LANES_ROWS_TILES  4
#define LANES_ROWS_POINTS 1
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

#define LANES_SQUEEZES 8

/* Where the four numbers begin whose bits are set, the first ones first. */
#define LANES_BYTES(l) 4 * (l), 4 * (l) + 1, 4 * (l) + 2, 4 * (l) + 3
#define LANES_PICK(a, b, c, d)                                                                     \
    {                                                                                              \
        LANES_BYTES(a), LANES_BYTES(b), LANES_BYTES(c), LANES_BYTES(d)                             \
    }

static const _Alignas(16) unsigned char lanes_picks[16][16] = {
    LANES_PICK(0, 0, 0, 0), LANES_PICK(0, 0, 0, 0), LANES_PICK(1, 0, 0, 0), LANES_PICK(0, 1, 0, 0),
    LANES_PICK(2, 0, 0, 0), LANES_PICK(0, 2, 0, 0), LANES_PICK(1, 2, 0, 0), LANES_PICK(0, 1, 2, 0),
    LANES_PICK(3, 0, 0, 0), LANES_PICK(0, 3, 0, 0), LANES_PICK(1, 3, 0, 0), LANES_PICK(0, 1, 3, 0),
    LANES_PICK(2, 3, 0, 0), LANES_PICK(0, 2, 3, 0), LANES_PICK(1, 2, 3, 0), LANES_PICK(0, 1, 2, 3),
};

/* Four at a time, for AVX2 has no instruction that compresses. */
static inline void lanes_squeeze(float *to, unsigned mask, __m256 v)
{
    const __m128i first = _mm_load_si128((const __m128i *)(const void *)lanes_picks[mask & 15]);
    const __m128i second = _mm_load_si128((const __m128i *)(const void *)lanes_picks[mask >> 4]);

    _mm_storeu_si128((__m128i *)(void *)to,
                     _mm_shuffle_epi8(_mm256_castsi256_si128((__m256i)v), first));
    _mm_storeu_si128((__m128i *)(void *)(to + __builtin_popcount(mask & 15)),
                     _mm_shuffle_epi8(_mm256_extracti128_si256((__m256i)v, 1), second));
}

#include "kernels/sample_lanes/sample_lanes_impl.h"
