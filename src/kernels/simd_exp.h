/* simd_exp.h - the exponential function of vectors (simd.h). */
#ifndef CO_KERNELS_SIMD_EXP_H
#define CO_KERNELS_SIMD_EXP_H

#include "kernels/simd.h"

#define SIMD_EXP_LEAST (-87.0f) /* exp of less is taken for that of this: 1.6e-38 */
#define SIMD_EXP_MOST  87.0f    /* x is no more than this */

#define SIMD_EXP_NEAR 0.34f /* below ln(2) / 2 */

/* (exp(r) - 1) / r for |r| <= ln(2) / 2, by the Taylor polynomial of exp. */
SIMD_INLINE vec simd_exp_slope(vec r)
{
    vec sum = simd_splat(1.0f / 5040);

    sum = sum * r + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    return sum * r + 1.0f;
}

/* exp(x), within 2e-7 of its value. With n = round(x / ln 2) it is 2^n exp(r), |r| <= ln(2) / 2.
   A NaN stays one: it is only ever multiplied. */
SIMD_INLINE vec simd_exp(vec x)
{
    const float round = 12582912; /* 1.5 * 2^23: adding it leaves whole numbers */
    const vec low = simd_max(simd_splat(SIMD_EXP_LEAST), x);
    const vec shifted = low * 1.44269504f + round, n = shifted - round;
    const vec r = (low - n * 0.693359375f) + n * 2.12194440e-4f;
    const uvec power = ((uvec)shifted << 23) + (127u << 23);
    const vec sum = simd_exp_slope(r) * r + 1.0f;

    return sum * (vec)power;
}

#endif
