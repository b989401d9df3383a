/*
 * gelu_impl.h - the loops of gelu.h for LANES lanes. Included once for each level of instructions,
 * by a file that defines LANES and GELU_TABLE.
 */
#include "kernels/gelu/gelu.h"
#include "kernels/simd_exp.h"

#define GELU_ROOT_HALF    0.70710678f /* sqrt(1 / 2) */
#define GELU_DENSITY_AT_0 0.39894228f /* 1 / sqrt(2 pi) */
#define GELU_SLOPE        1.59576912f /* 2 sqrt(2 / pi) */
#define GELU_CUBE         0.044715f

/* A function and its slope. */
typedef struct gelu_point {
    vec value, slope;
} gelu_point;

SIMD_INLINE vec gelu_size(vec x)
{
    return simd_select((ivec)(x < 0.0f), -x, x);
}

/* x P(x), P(x) + x p(x). The normal distribution P by its complementary error function (Abramowitz
   and Stegun, 7.1.26: within 1.5e-7), which has the density p as a factor. */
SIMD_INLINE gelu_point gelu_exact_at(vec x)
{
    const vec z = gelu_size(x) * GELU_ROOT_HALF, t = 1.0f / (1.0f + z * 0.3275911f);
    const vec power = simd_exp(-(z * z));
    vec tail = simd_splat(1.061405429f), below;

    tail = tail * t - 1.453152027f;
    tail = tail * t + 1.421413741f;
    tail = tail * t - 0.284496736f;
    tail = tail * t + 0.254829592f;
    tail = tail * t * power * 0.5f;
    below = simd_select((ivec)(x < 0.0f), tail, 1.0f - tail);
    return (gelu_point){x * below, below + x * power * GELU_DENSITY_AT_0};
}

/* x s(u), s the logistic function, u = 2 sqrt(2 / pi) (x + 0.044715 x^3): as (1 + tanh(u / 2)) / 2.
 */
SIMD_INLINE gelu_point gelu_tanh_at(vec x)
{
    const vec u = (x + x * x * x * GELU_CUBE) * GELU_SLOPE;
    const vec power = simd_exp(-gelu_size(u)), share = 1.0f / (1.0f + power);
    const vec below = simd_select((ivec)(u < 0.0f), power * share, share);
    const vec slope = (x * x * (3 * GELU_CUBE) + 1.0f) * GELU_SLOPE;

    return (gelu_point){x * below, below + x * (power * share * share) * slope};
}

#define GELU_PASSES(name)                                                                          \
    static void gelu_##name(void *to, const void *from, int64_t n)                                 \
    {                                                                                              \
        const float *x = from;                                                                     \
        float *y = to;                                                                             \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (; i + LANES <= n; i += LANES)                                                         \
            simd_store_any(y + i, gelu_##name##_at(simd_load_any(x + i)).value);                   \
        for (; i < n; i++)                                                                         \
            y[i] = gelu_##name##_at(simd_splat(x[i])).value[0];                                    \
    }                                                                                              \
                                                                                                   \
    static void gelu_##name##_gradient(void *to, const void *from, const void *grad, int64_t n)    \
    {                                                                                              \
        const float *x = from, *dy = grad;                                                         \
        float *dx = to;                                                                            \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (; i + LANES <= n; i += LANES)                                                         \
            simd_store_any(dx + i,                                                                 \
                           simd_load_any(dy + i) * gelu_##name##_at(simd_load_any(x + i)).slope);  \
        for (; i < n; i++)                                                                         \
            dx[i] = dy[i] * gelu_##name##_at(simd_splat(x[i])).slope[0];                           \
    }

GELU_PASSES(exact)
GELU_PASSES(tanh)

const gelu_loops GELU_TABLE = {gelu_exact, gelu_tanh, gelu_exact_gradient, gelu_tanh_gradient};
