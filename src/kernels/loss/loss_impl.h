/*
 * loss_impl.h - the loops of loss.h for LANES lanes. Included once for each instruction set, by a
 * file that defines LANES and LOSS_TABLE.
 */
#include "kernels/loss/loss.h"
#include "kernels/simd_exp.h"

#define LOSS_BLOCK 1024 /* numbers whose sum is a float: a longer one would be too inexact */

/* log(1 + z) for z from 0 to 1: 2 artanh(z / (2 + z)), by its Taylor series. */
SIMD_INLINE vec loss_log1p(vec z)
{
    const vec s = z / (z + 2.0f), square = s * s;
    vec sum = simd_splat(1.0f / 15);

    sum = sum * square + 1.0f / 13;
    sum = sum * square + 1.0f / 11;
    sum = sum * square + 1.0f / 9;
    sum = sum * square + 1.0f / 7;
    sum = sum * square + 1.0f / 5;
    sum = sum * square + 1.0f / 3;
    sum = sum * square + 1.0f;
    return sum * s * 2.0f;
}

/* exp(-|x|) */
SIMD_INLINE vec loss_decay(vec x)
{
    return simd_exp(simd_select((ivec)(x < 0.0f), x, -x));
}

SIMD_INLINE vec loss_squared_term(vec x, vec t)
{
    return (x - t) * (x - t);
}

SIMD_INLINE vec loss_absolute_term(vec x, vec t)
{
    const vec d = x - t;

    return simd_select((ivec)(d < 0.0f), -d, d);
}

SIMD_INLINE vec loss_binary_term(vec x, vec t)
{
    return simd_select((ivec)(x < 0.0f), simd_splat(0), x) - t * x + loss_log1p(loss_decay(x));
}

#define LOSS_SUM(name)                                                                             \
    static double loss_##name##_sum(const float *x, const float *t, int64_t n)                     \
    {                                                                                              \
        double sum = 0;                                                                            \
                                                                                                   \
        for (int64_t i = 0; i < n;) {                                                              \
            const int64_t end = n - i < LOSS_BLOCK ? n : i + LOSS_BLOCK;                           \
            vec all = {0};                                                                         \
                                                                                                   \
            for (; i + LANES <= end; i += LANES)                                                   \
                all += loss_##name##_term(simd_load_any(x + i), simd_load_any(t + i));             \
            for (int l = 0; l < LANES; l++)                                                        \
                sum += (double)all[l];                                                             \
            for (; i < end; i++)                                                                   \
                sum += (double)loss_##name##_term(simd_splat(x[i]), simd_splat(t[i]))[0];          \
        }                                                                                          \
        return sum;                                                                                \
    }

LOSS_SUM(squared)
LOSS_SUM(absolute)
LOSS_SUM(binary)

/* In double precision, as the reference kernel: both give the same bits. */
static void loss_squared_gradient(float *dx, const float *x, const float *t, double scale,
                                  int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = (float)(scale * (2 * ((double)x[i] - (double)t[i])));
}

/* A NaN stays one. */
static void loss_absolute_gradient(float *dx, const float *x, const float *t, double scale,
                                   int64_t n)
{
    const float up = (float)scale;

    for (int64_t i = 0; i < n; i++) {
        const float none = up * (x[i] - t[i]), below = x[i] < t[i] ? -up : none;

        dx[i] = x[i] > t[i] ? up : below;
    }
}

/* scale (1 / (1 + exp(-x)) - t) */
SIMD_INLINE vec loss_binary_slope(vec x, vec t, float scale)
{
    const vec z = loss_decay(x), share = 1.0f / (z + 1.0f);

    return (simd_select((ivec)(x < 0.0f), z * share, share) - t) * scale;
}

static void loss_binary_gradient(float *dx, const float *x, const float *t, double scale, int64_t n)
{
    const float by = (float)scale;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        simd_store_any(dx + i, loss_binary_slope(simd_load_any(x + i), simd_load_any(t + i), by));
    for (; i < n; i++)
        dx[i] = loss_binary_slope(simd_splat(x[i]), simd_splat(t[i]), by)[0];
}

const loss_loops LOSS_TABLE = {
    {loss_squared_sum, loss_squared_gradient},
    {loss_absolute_sum, loss_absolute_gradient},
    {loss_binary_sum, loss_binary_gradient},
};
