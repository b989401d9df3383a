/*
 * batchnorm_basic.c - batch norm's loops on 8 channels at once, for any processor: on x86-64 in
 * halves of SSE2, which all of them have.
 */
#define LANES      8
#define NORM_TABLE norm_loops_basic

#include "kernels/batchnorm/batchnorm.h"
#include "kernels/cell.h"

#ifdef __SSE2__
#include <emmintrin.h>

typedef union norm_halves {
    vec all;
    __m128 half[2];
} norm_halves;

static inline uint16_t norm_is_kept(vec v)
{
    const norm_halves h = {.all = v};
    const __m128 zero = _mm_setzero_ps();

    return (uint16_t)(_mm_movemask_ps(_mm_cmpnle_ps(h.half[0], zero)) |
                      _mm_movemask_ps(_mm_cmpnle_ps(h.half[1], zero)) << 4);
}

static inline __m128 norm_keep_half(__m128 v, __m128i bits, __m128i lane)
{
    return _mm_and_ps(v, _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_and_si128(bits, lane), lane)));
}

static inline vec norm_keep(vec v, uint16_t bits)
{
    const __m128i set = _mm_set1_epi32(bits);
    norm_halves h = {.all = v};

    h.half[0] = norm_keep_half(h.half[0], set, _mm_setr_epi32(1, 2, 4, 8));
    h.half[1] = norm_keep_half(h.half[1], set, _mm_setr_epi32(16, 32, 64, 128));
    return h.all;
}
#else
static inline uint16_t norm_is_kept(vec v)
{
    unsigned bits = 0;

    for (int l = 0; l < LANES; l++)
        bits |= (unsigned)!(v[l] <= 0) << l;
    return (uint16_t)bits;
}

static inline vec norm_keep(vec v, uint16_t bits)
{
    for (int l = 0; l < LANES; l++)
        v[l] = bits >> l & 1 ? v[l] : 0;
    return v;
}
#endif

#include "kernels/batchnorm/batchnorm_impl.h"
