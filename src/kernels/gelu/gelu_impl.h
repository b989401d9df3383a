/*
 * gelu_impl.h - the loops of gelu.h. Included by files that define
 *
 *   GELU_TABLE                   the table of loops
 *   gelu_number                  of tensors
 *   gelu_load gelu_store         LANES numbers as floats, and back
 *   gelu_first                   the first of LANES floats as a number
 *   gelu_size                    the absolute value
 *   gelu_negative(x, a, b)       lanes of a where x < 0, else of b
 *   gelu_exp                     of the range of its exponents
 *   gelu_inverse                 1 / x
 *   gelu_tanh_at                 after this
 */
#include "kernels/gelu/gelu.h"

#define GELU_ROOT_HALF    0.70710678f /* sqrt(1 / 2) */
#define GELU_DENSITY_AT_0 0.39894228f /* 1 / sqrt(2 pi) */
#define GELU_SLOPE        1.59576912f /* 2 sqrt(2 / pi) */
#define GELU_CUBE         0.044715f
#define GELU_FAR          1e4f /* of larger squares the slope is that of this, times nothing */

/* A function and its slope. */
typedef struct gelu_point {
    vec value, slope;
} gelu_point;

/* x P(x), P(x) + x p(x). The normal distribution P by its complementary error function (Abramowitz
   and Stegun, 7.1.26: within 1.5e-7), which has the density p as a factor. */
SIMD_INLINE gelu_point gelu_exact_at(vec x)
{
    const vec z = gelu_size(x) * GELU_ROOT_HALF, t = gelu_inverse(1.0f + z * 0.3275911f);
    const vec power = gelu_exp(-(z * z));
    vec tail = simd_splat(1.061405429f), below;

    tail = tail * t - 1.453152027f;
    tail = tail * t + 1.421413741f;
    tail = tail * t - 0.284496736f;
    tail = tail * t + 0.254829592f;
    tail = tail * t * power * 0.5f;
    below = gelu_negative(x, tail, 1.0f - tail);
    return (gelu_point){x * below, below + x * power * GELU_DENSITY_AT_0};
}

/* x s(u), s the logistic function, u = 2 sqrt(2 / pi) (x + 0.044715 x^3): as (1 + tanh(u / 2)) / 2.
 */
SIMD_INLINE gelu_point gelu_tanh_at(vec x);

#define GELU_PASSES(name)                                                                          \
    static void gelu_##name(void *to, const void *from, int64_t n)                                 \
    {                                                                                              \
        const gelu_number *x = from;                                                               \
        gelu_number *y = to;                                                                       \
        int64_t i = 0;                                                                             \
                                                                                                   \
        SIMD_UNROLL_BY(GELU_AT_ONCE)                                                               \
        for (; i + LANES <= n; i += LANES) {                                                       \
            simd_fetch(x + i);                                                                     \
            simd_fetch_to_write(y + i);                                                            \
            gelu_store(y + i, gelu_##name##_at(gelu_load(x + i)).value);                           \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            const gelu_number some[LANES] = {x[i]};                                                \
                                                                                                   \
            y[i] = gelu_first(gelu_##name##_at(gelu_load(some)).value);                            \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void gelu_##name##_gradient(void *to, const void *from, const void *grad, int64_t n)    \
    {                                                                                              \
        const gelu_number *x = from, *dy = grad;                                                   \
        gelu_number *dx = to;                                                                      \
        int64_t i = 0;                                                                             \
                                                                                                   \
        SIMD_UNROLL_BY(GELU_AT_ONCE)                                                               \
        for (; i + LANES <= n; i += LANES) {                                                       \
            simd_fetch(x + i);                                                                     \
            simd_fetch(dy + i);                                                                    \
            simd_fetch_to_write(dx + i);                                                           \
            gelu_store(dx + i, gelu_load(dy + i) * gelu_##name##_at(gelu_load(x + i)).slope);      \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            const gelu_number some[2][LANES] = {{x[i]}, {dy[i]}};                                  \
            const vec slope = gelu_##name##_at(gelu_load(some[0])).slope;                          \
                                                                                                   \
            dx[i] = gelu_first(gelu_load(some[1]) * slope);                                        \
        }                                                                                          \
    }

GELU_PASSES(exact)
GELU_PASSES(tanh)

const gelu_loops GELU_TABLE = {gelu_exact, gelu_tanh, gelu_exact_gradient, gelu_tanh_gradient};
