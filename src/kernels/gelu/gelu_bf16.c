/*
 * gelu_bf16.c - the loops of gelu.h for BF16. Exponentials and quotients are as exact as it takes
 * for results that are rounded to 8 bits: within 2e-5.
 */
#include "kernels/gelu/gelu.h"

#define LANES 16
#include "kernels/half16_exp.h"

#define GELU_ROOT_HALF    0.70710678f /* sqrt(1 / 2) */
#define GELU_DENSITY_AT_0 0.39894228f /* 1 / sqrt(2 pi) */
#define GELU_SLOPE        1.59576912f /* 2 sqrt(2 / pi) */
#define GELU_CUBE         0.044715f
#define GELU_FAR          1e4f /* of larger squares the slope is that of this, times nothing */

/* A function and its slope. */
typedef struct gelu_point {
    vec value, slope;
} gelu_point;

/* A NaN stays one: it is the second of two numbers. */
SIMD_INLINE vec gelu_exp(vec x)
{
    return half16_exp((vec)_mm512_min_ps(_mm512_set1_ps(HALF16_EXP_MOST), (__m512)x));
}

/* 1 / x within 2^-14. */
SIMD_INLINE vec gelu_inverse(vec x)
{
    return (vec)_mm512_rcp14_ps((__m512)x);
}

/* The inverse, with a step of Newton's. */
SIMD_INLINE vec gelu_inverse_of(vec x)
{
    const vec first = gelu_inverse(x);

    return first * (2.0f - x * first);
}

/* As gelu_exact_at of gelu_impl.h. */
SIMD_INLINE gelu_point gelu_exact_at(vec x)
{
    const vec z = (vec)_mm512_abs_ps((__m512)x) * GELU_ROOT_HALF;
    const vec t = gelu_inverse_of(1.0f + z * 0.3275911f), power = half16_exp(-(z * z));
    const __mmask16 negative = _mm512_cmp_ps_mask((__m512)x, _mm512_setzero_ps(), _CMP_LT_OQ);
    vec tail = simd_splat(1.061405429f), below;

    tail = tail * t - 1.453152027f;
    tail = tail * t + 1.421413741f;
    tail = tail * t - 0.284496736f;
    tail = tail * t + 0.254829592f;
    tail = tail * t * power * 0.5f;
    below = (vec)_mm512_mask_blend_ps(negative, (__m512)(1.0f - tail), (__m512)tail);
    return (gelu_point){x * below, below + x * power * GELU_DENSITY_AT_0};
}

/* x s(u), s(u) = 1 / (1 + exp(-u)), whose slope is s(u) (1 - s(u)). */
SIMD_INLINE gelu_point gelu_tanh_at(vec x)
{
    const vec square = x * x, u = (square * (GELU_CUBE * GELU_SLOPE) + GELU_SLOPE) * x;
    const vec below = gelu_inverse_of(1.0f + gelu_exp(-u));
    const vec some = (vec)_mm512_min_ps((__m512)square, _mm512_set1_ps(GELU_FAR));
    const vec slope = some * (3 * GELU_CUBE * GELU_SLOPE) + GELU_SLOPE;

    return (gelu_point){x * below, below + x * (below - below * below) * slope};
}

#define GELU_PASSES(name)                                                                          \
    static void gelu_##name(void *to, const void *from, int64_t n)                                 \
    {                                                                                              \
        const uint16_t *x = from;                                                                  \
        uint16_t *y = to;                                                                          \
        int64_t i = 0;                                                                             \
                                                                                                   \
        SIMD_UNROLL(4)                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            half16_store(y + i, gelu_##name##_at(half16_load(x + i)).value);                       \
        for (; i < n; i++) {                                                                       \
            const uint16_t some[LANES] = {x[i]};                                                   \
                                                                                                   \
            y[i] = half16_round(gelu_##name##_at(half16_load(some)).value)[0];                     \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void gelu_##name##_gradient(void *to, const void *from, const void *grad, int64_t n)    \
    {                                                                                              \
        const uint16_t *x = from, *dy = grad;                                                      \
        uint16_t *dx = to;                                                                         \
        int64_t i = 0;                                                                             \
                                                                                                   \
        SIMD_UNROLL(4)                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            half16_store(dx + i,                                                                   \
                         half16_load(dy + i) * gelu_##name##_at(half16_load(x + i)).slope);        \
        for (; i < n; i++) {                                                                       \
            const uint16_t some[2][LANES] = {{x[i]}, {dy[i]}};                                     \
            const vec slope = gelu_##name##_at(half16_load(some[0])).slope;                        \
                                                                                                   \
            dx[i] = half16_round(half16_load(some[1]) * slope)[0];                                 \
        }                                                                                          \
    }

GELU_PASSES(exact)
GELU_PASSES(tanh)

const gelu_loops gelu_loops_bf16 = {gelu_exact, gelu_tanh, gelu_exact_gradient, gelu_tanh_gradient};
