/* half16_exp.h - the exponential function for results that are rounded to BF16 (half16.h). */
#ifndef CO_KERNELS_HALF16_EXP_H
#define CO_KERNELS_HALF16_EXP_H

#include "kernels/half16.h"

#define HALF16_LOG2_E 1.44269504f /* exp(x) is 2^(x log2(e)) */

/* half16_fraction: x - n, n the whole number below x; half16_scale: p 2^n. */
#ifdef __AVX512F__
#define HALF16_BELOW 9 /* rounded down, without exceptions */

SIMD_INLINE vec half16_fraction(vec x)
{
    return (vec)_mm512_reduce_ps((__m512)x, HALF16_BELOW);
}

SIMD_INLINE vec half16_scale(vec p, vec x)
{
    return (vec)_mm512_scalef_ps((__m512)p, (__m512)x);
}
#else
#define HALF16_MOST 126.0f /* maximum of the absolute value of x that counts */

SIMD_INLINE vec half16_whole(vec x)
{
    const float round = 12582912; /* 1.5 * 2^23: adding it leaves whole numbers */

    return x - 0.5f + round - round;
}

SIMD_INLINE vec half16_limit(vec x)
{
    const vec most = simd_splat(HALF16_MOST);

    return simd_max(-most, simd_min(most, x));
}

SIMD_INLINE vec half16_fraction(vec x)
{
    const vec limited = half16_limit(x);

    return limited - half16_whole(limited);
}

SIMD_INLINE vec half16_scale(vec p, vec x)
{
    const ivec power = __builtin_convertvector(half16_whole(half16_limit(x)), ivec) + 127;

    return p * (vec)(power << 23);
}
#endif

/* 2^x within 3e-6 of its value, by a polynomial for its fraction: 0 and infinity beyond the range
   of floats (without AVX-512 2^-126 and 2^126), and a NaN stays one. */
SIMD_INLINE vec half16_exp2(vec x)
{
    const vec r = half16_fraction(x);
    vec sum = simd_splat(0.013534168f);

    sum = sum * r + 0.05201146f;
    sum = sum * r + 0.24144275f;
    sum = sum * r + 0.69300383f;
    sum = sum * r + 1.0000026f;
    return half16_scale(sum, x);
}

SIMD_INLINE vec half16_exp(vec x)
{
    return half16_exp2(x * HALF16_LOG2_E);
}

#endif
