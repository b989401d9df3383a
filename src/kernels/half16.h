/*
 * half16.h - vectors of 16 numbers of BF16, as floats: for files that define LANES as 16. Rounding
 * is one instruction in those that are compiled for AVX-512 with BF16.
 */
#ifndef CO_KERNELS_HALF16_H
#define CO_KERNELS_HALF16_H

#include "kernels/simd.h"

typedef uint16_t half16 __attribute__((vector_size(32), may_alias));
/* The same, unaligned. */
typedef uint16_t loose_half16
    __attribute__((vector_size(32), may_alias, aligned(sizeof(uint16_t))));

SIMD_INLINE half16 half16_take(const uint16_t *from)
{
    return *(const loose_half16 *)from;
}

SIMD_INLINE uvec half16_bits(half16 value)
{
#ifdef __AVX512F__ /* GCC 12 converts halves */
    return (uvec)_mm512_cvtepu16_epi32((__m256i)value);
#else
    return __builtin_convertvector(value, uvec);
#endif
}

SIMD_INLINE vec half16_widen(half16 value)
{
    return (vec)(half16_bits(value) << 16);
}

SIMD_INLINE vec half16_load(const uint16_t *from)
{
    return half16_widen(half16_take(from));
}

/* To nearest, ties to even. */
SIMD_INLINE half16 half16_round(vec value)
{
#ifdef __AVX512BF16__
    return (half16)_mm512_cvtneps_pbh((__m512)value);
#else
    const uvec bits = (uvec)value, up = bits + 0x7fff + (bits >> 16 & 1);
    const vec same = value;
    const uvec nan = (uvec)(value != same);

    return __builtin_convertvector(((up & ~nan) | ((bits | 1 << 22) & nan)) >> 16, half16);
#endif
}

SIMD_INLINE void half16_store(uint16_t *to, vec value)
{
    *(loose_half16 *)to = half16_round(value);
}

/* LANES numbers, and LANES more. */
SIMD_INLINE void half16_store_two(uint16_t *to, vec first, vec second)
{
#ifdef __AVX512BF16__
    *(loose_uvec *)to = (uvec)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
#else
    half16_store(to, first);
    half16_store(to + LANES, second);
#endif
}

/* Pairs of a (the lower) and b. */
SIMD_INLINE vec half16_join(half16 a, half16 b)
{
#ifdef __AVX512BW__
    const __m512i places =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512((__m256i)a), (__m256i)b, 1);

    return (vec)_mm512_permutexvar_epi16(places, both);
#else
    return (vec)(half16_bits(a) | half16_bits(b) << 16);
#endif
}

/* Of `n` floats in rows of `row`, neighbouring rows rounded and joined: n / 2 words. `to` may be
   `from`. */
SIMD_INLINE void half16_join_rows(float *to, const float *from, int64_t n, int64_t row)
{
    for (int64_t i = 0; i < n / 2; i += row)
        for (int64_t h = i; h < i + row; h += LANES)
            simd_store_any(to + h, half16_join(half16_round(simd_load_any(from + i + h)),
                                               half16_round(simd_load_any(from + i + h + row))));
}

#ifdef __AVX512BF16__
/* The pair at x in each word. Written out, as compilers would keep more of them than there are
   registers. */
SIMD_INLINE vec half16_spread(const float *x)
{
    vec pair;

    __asm__("vbroadcastss %1, %0" : "=v"(pair) : "m"(*x));
    return pair;
}

/* sum + both products of the pairs of x with those of w. */
SIMD_INLINE vec half16_dot(vec sum, vec x, vec w)
{
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)w, (__m512bh)x);
}

/* The same with the pair at x, without a register for it. */
SIMD_INLINE vec half16_dot_pair(vec sum, const float *x, vec w)
{
    __asm__("vdpbf16ps %1%{1to16%}, %2, %0" : "+v"(sum) : "m"(*x), "v"(w));
    return sum;
}
#endif

#endif
