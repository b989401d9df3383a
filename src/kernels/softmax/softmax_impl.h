/*
 * softmax_impl.h - the loops of softmax.h for LANES lanes. Included once for each instruction set,
 * by a file that defines LANES and SOFTMAX_TABLE.
 */
#include <math.h>
#include <string.h>

#include "kernels/simd_exp.h"
#include "kernels/softmax/softmax.h"

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
        all += simd_exp(softmax_load(x + i, n - i, -INFINITY) - max);
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
        const vec p = simd_exp(softmax_load(y + i, n - i, 0));

        softmax_store(dx + i, softmax_load(dy + i, n - i, 0) - p * sum, n - i);
    }
}

const softmax_loops SOFTMAX_TABLE = {softmax_log, softmax_log_gradient};
