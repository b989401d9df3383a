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
    ivec lane;

    if (n >= LANES)
        return simd_load_any(from);
    for (int l = 0; l < LANES; l++)
        lane[l] = l;
    return simd_select((ivec)(lane < (int32_t)n), simd_load_some(from, n), simd_splat(rest));
}

SIMD_INLINE void softmax_store(float *to, vec value, int64_t n)
{
    if (n >= LANES)
        simd_store_any(to, value);
    else
        simd_store_some(to, value, n);
}

/* Sums of blocks are added up, as one of many thousand terms would be too inexact. */
#define SOFTMAX_BLOCK 1024

/* A sum over a row of `value` of the vector at i, by blocks, whose vectors of sums `add` takes. */
#define SOFTMAX_SUM_BY(add, sum, i, n, value)                                                      \
    for (int64_t i = 0; i < (n);) {                                                                \
        const int64_t end = (n)-i < SOFTMAX_BLOCK ? (n) : i + SOFTMAX_BLOCK;                       \
        vec part = {0};                                                                            \
                                                                                                   \
        for (; i < end; i += LANES)                                                                \
            part += value;                                                                         \
        add(sum, part)                                                                             \
    }
#define SOFTMAX_IN_TURN(sum, part)                                                                 \
    for (int l = 0; l < LANES; l++)                                                                \
        sum += part[l];
#define SOFTMAX_BY_HALVES(sum, part) sum += simd_add_up(part);

/* SOFTMAX_SUM(sum, i, n, value) */
#define SOFTMAX_SUM(...)       SOFTMAX_SUM_BY(SOFTMAX_IN_TURN, __VA_ARGS__)
#define SOFTMAX_SHORT_SUM(...) SOFTMAX_SUM_BY(SOFTMAX_BY_HALVES, __VA_ARGS__)

static float softmax_find_max(const float *x, int64_t n)
{
    vec most = simd_splat(x[0]);

    for (int64_t i = 0; i < n; i += LANES) {
        const vec v = softmax_load(x + i, n - i, x[0]);

        most = simd_select((ivec)(v > most), v, most);
    }
    return simd_most(most);
}

static softmax_norm softmax_find_norm(const float *x, int64_t n)
{
    const float max = softmax_find_max(x, n);
    float sum = 0;

    SOFTMAX_SUM(sum, i, n, simd_exp(softmax_load(x + i, n - i, -INFINITY) - max))
    return (softmax_norm){max, sum};
}

/* exp(x - max), without the largest, whose terms are 1. A NaN is none of them and stays one. */
SIMD_INLINE vec softmax_other(vec x, float max)
{
    return simd_select((ivec)(x == max), (vec){0}, simd_exp(x - max));
}

SIMD_INLINE vec softmax_largest(vec x, float max)
{
    return simd_select((ivec)(x == max), simd_splat(1), (vec){0});
}

/* Where one logit is far above the others the sum is 1 and little more, and its logarithm about
   that little: the others are summed by themselves, so that none of it is rounded away. */
static void softmax_log(float *y, const float *x, int64_t n)
{
    const float max = softmax_find_max(x, n);
    float largest = 0, others = 0, norm;

    SOFTMAX_SHORT_SUM(largest, i, n, softmax_largest(softmax_load(x + i, n - i, -INFINITY), max))
    SOFTMAX_SHORT_SUM(others, i, n, softmax_other(softmax_load(x + i, n - i, -INFINITY), max))
    norm = (float)log1p((double)(largest - 1) + (double)others);
    for (int64_t i = 0; i < n; i += LANES)
        softmax_store(y + i, softmax_load(x + i, n - i, 0) - max - norm, n - i);
}

/* Where p = exp(y) is near 1 and dy about the sum, as for a label that is found, dy - p sum loses
   most digits: (dy - sum) - (p - 1) sum does not. */
static void softmax_log_gradient(float *dx, const float *y, const float *dy, int64_t n)
{
    float sum = 0;

    SOFTMAX_SHORT_SUM(sum, i, n, softmax_load(dy + i, n - i, 0))
    for (int64_t i = 0; i < n; i += LANES) {
        const vec log_p = softmax_load(y + i, n - i, 0), d = softmax_load(dy + i, n - i, 0);
        const vec beyond = simd_exp_slope(log_p) * log_p;
        const vec near = (d - sum) - beyond * sum, far = d - simd_exp(log_p) * sum;

        softmax_store(dx + i, simd_select((ivec)(log_p > -SIMD_EXP_NEAR), near, far), n - i);
    }
}

static double softmax_below(const float *x, float max, int64_t n)
{
    double sum = 0;

    SOFTMAX_SUM(sum, i, n, max - softmax_load(x + i, n - i, max))
    return sum;
}

static void softmax_entropy_gradient(float *dx, const float *x, float max, float scale, float shift,
                                     int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const vec p = simd_exp(softmax_load(x + i, n - i, max) - max);

        softmax_store(dx + i, p * scale - shift, n - i);
    }
}

const softmax_loops SOFTMAX_TABLE = {softmax_log, softmax_log_gradient, softmax_find_norm,
                                     softmax_below, softmax_entropy_gradient};
