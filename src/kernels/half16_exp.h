/* half16_exp.h - the exponential function for results that are rounded to BF16 (half16.h). */
#ifndef CO_KERNELS_HALF16_EXP_H
#define CO_KERNELS_HALF16_EXP_H

#include "kernels/half16.h"

#define HALF16_EXP_LEAST (-80.0f) /* exp of less is taken for that of this: 1.8e-35 */
#define HALF16_EXP_MOST  80.0f    /* maximum of x */

/* exp(x) within 5e-6 of its value: 2^n exp(r), n = round(x / ln 2), by six terms of exp. A NaN
   stays one. */
SIMD_INLINE vec half16_exp(vec x)
{
    const float round = 12582912; /* 1.5 * 2^23: adding it leaves whole numbers */
#ifdef __AVX512F__                /* of two numbers the second, if one is a NaN */
    const vec low = (vec)_mm512_max_ps(_mm512_set1_ps(HALF16_EXP_LEAST), (__m512)x);
#else
    const vec low = simd_select((ivec)(x < HALF16_EXP_LEAST), simd_splat(HALF16_EXP_LEAST), x);
#endif
    const vec shifted = low * 1.44269504f + round, r = low - (shifted - round) * 0.69314718f;
    const ivec power = ((ivec)shifted << 23) + (127 << 23);
    vec sum = simd_splat(1.0f / 120);

    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    return sum * (vec)power;
}

#endif
