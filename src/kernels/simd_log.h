/* simd_log.h - the natural logarithm of vectors (simd.h). */
#ifndef CO_KERNELS_SIMD_LOG_H
#define CO_KERNELS_SIMD_LOG_H

#include "kernels/simd.h"

/* log(x) of a normal number above 0, within 2e-7 of its value or, near 1, of the number 1. With
   x = 2^n m, m from sqrt(1/2) to sqrt(2), it is n ln 2 + log m, and log m = 2 artanh((m - 1) / (m +
   1)) by its series. A NaN stays one. */
SIMD_INLINE vec simd_log(vec x)
{
    const ivec shifted = (ivec)x - 0x3f3504f3; /* sqrt(1/2) */
    const ivec n = shifted >> 23;
    const vec m = (vec)((ivec)x - (n << 23)), s = (m - 1.0f) / (m + 1.0f), square = s * s;
    const vec whole = __builtin_convertvector(n, vec);
    vec sum = simd_splat(2.0f / 9);

    sum = sum * square + 2.0f / 7;
    sum = sum * square + 2.0f / 5;
    sum = sum * square + 2.0f / 3;
    sum = sum * square + 2.0f;
    return whole * 0.693359375f + (whole * -2.12194440e-4f + sum * s) + x * 0.0f;
}

#endif
