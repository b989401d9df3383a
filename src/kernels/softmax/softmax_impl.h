/*
 * softmax_impl.h - the loops of softmax.h for LANES lanes. Included once for each instruction set,
 * by a file that defines LANES and SOFTMAX_TABLE.
 */
#include <math.h>
#include <string.h>

#include "kernels/simd.h"
#include "kernels/softmax/softmax.h"

#define SOFTMAX_LEAST (-87.0f) /* exp of less is taken for that of this: 1.6e-38 */

/* exp(x) for x <= 0, within 2e-7 of its value. With n = round(x / ln 2) it is 2^n exp(r), |r| <=
   ln(2) / 2, and exp(r) its Taylor polynomial. A NaN stays one: it is only ever multiplied. */
SIMD_INLINE vec softmax_exp(vec x)
{
    const float round = 12582912; /* 1.5 * 2^23: adding it leaves whole numbers */
    const vec low = simd_select((ivec)(x < SOFTMAX_LEAST), simd_splat(SOFTMAX_LEAST), x);
    const vec shifted = low * 1.44269504f + round, n = shifted - round;
    const vec r = (low - n * 0.693359375f) + n * 2.12194440e-4f;
    const ivec power = ((ivec)shifted << 23) + (127 << 23);
    vec sum = simd_splat(1.0f / 5040);

    sum = sum * r + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    return sum * (vec)power;
}

/* The first n numbers, at most LANES, and `rest`. */
SIMD_INLINE vec softmax_load(const float *from, int64_t n, float rest)
{
    float some[LANES];

    if (n >= LANES)
        return simd_load_any(from);
    simd_store_any(some, simd_splat(rest));
    memcpy(some, from, (size_t)n * sizeof(float));
    return simd_load_any(some);
}

SIMD_INLINE void softmax_store(float *to, vec value, int64_t n)
{
    float some[LANES];

    if (n >= LANES) {
        simd_store_any(to, value);
        return;
    }
    simd_store_any(some, value);
    memcpy(to, some, (size_t)n * sizeof(float));
}

static void softmax_log(float *y, const float *x, int64_t n)
{
    vec most = simd_splat(x[0]), all = {0};
    float max = x[0], sum = 0;

    for (int64_t i = 0; i < n; i += LANES) {
        const vec v = softmax_load(x + i, n - i, x[0]);

        most = simd_select((ivec)(v > most), v, most);
    }
    for (int l = 0; l < LANES; l++)
        max = most[l] > max ? most[l] : max;
    for (int64_t i = 0; i < n; i += LANES)
        all += softmax_exp(softmax_load(x + i, n - i, -INFINITY) - max);
    for (int l = 0; l < LANES; l++)
        sum += all[l];
    sum = (float)((double)max + log((double)sum));
    for (int64_t i = 0; i < n; i += LANES)
        softmax_store(y + i, softmax_load(x + i, n - i, 0) - sum, n - i);
}

static void softmax_log_gradient(float *dx, const float *y, const float *dy, int64_t n)
{
    vec all = {0};
    float sum = 0;

    for (int64_t i = 0; i < n; i += LANES)
        all += softmax_load(dy + i, n - i, 0);
    for (int l = 0; l < LANES; l++)
        sum += all[l];
    for (int64_t i = 0; i < n; i += LANES) {
        const vec p = softmax_exp(softmax_load(y + i, n - i, 0));

        softmax_store(dx + i, softmax_load(dy + i, n - i, 0) - p * sum, n - i);
    }
}

const softmax_loops SOFTMAX_TABLE = {softmax_log, softmax_log_gradient};
