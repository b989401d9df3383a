/*
 * gemm_half_common.h - the loops of gemm_half.h: what all forms of panels share, which is how rows
 * are read and what is done with sums.
 */
#include <string.h>

#include "kernels/gemm_half/gemm_half.h"

#define LANES 16

#include "kernels/half16.h"

static int64_t gemm_half_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* 32 numbers in pairs. */
SIMD_INLINE vec gemm_half_pairs(vec first, vec second)
{
#ifdef __AVX512BF16__
    return (vec)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
#else
    const half16 both[2] = {half16_round(first), half16_round(second)};
    vec out;

    memcpy(&out, both, sizeof(out));
    return out;
#endif
}

/* The first n numbers of a vector of bytes, then zeros; n may be negative, or too many. */
SIMD_INLINE vec gemm_half_first(const void *from, int64_t n, const int64_t most, const size_t each)
{
    vec some = {0};

    if (n >= most)
        return simd_load_any(from);
    if (n > 0)
        memcpy(&some, from, (size_t)n * each);
    return some;
}

/* 16 floats, or the first n of them. */
SIMD_INLINE vec gemm_half_floats(const float *from, int64_t n, const bool whole)
{
    return whole ? simd_load_any(from) : gemm_half_first(from, n, LANES, sizeof(*from));
}

/* 16 numbers of BF16, likewise. */
SIMD_INLINE half16 gemm_half_some(const uint16_t *from, int64_t n, const bool whole)
{
    half16 some = {0};

    if (whole || n >= LANES)
        return half16_take(from);
    if (n > 0)
        memcpy(&some, from, (size_t)n * sizeof(*from));
    return some;
}

/* Elements that are prefetched, as more rows are read than a CPU follows by itself. */
#define GEMM_HALF_AHEAD 64

/* --- sums --- */

static void gemm_half_put_half(const gemm_half_job *job, const float *sums, int64_t column,
                               int64_t row, int64_t end)
{
    const int64_t n = gemm_half_least(job->columns - column, GEMM_HALF_PANEL);

    for (; row < end; row++) {
        const float *sum = sums + row * GEMM_HALF_PANEL;
        const vec pairs = gemm_half_pairs(simd_load(sum), simd_load(sum + LANES));
        uint16_t *y = (uint16_t *)job->y + row * job->step + column;

        if (n == GEMM_HALF_PANEL)
            simd_store_any((float *)(void *)y, pairs);
        else
            memcpy(y, &pairs, (size_t)n * sizeof(*y));
    }
}

static void gemm_half_put_floats(const gemm_half_job *job, const float *sums, int64_t column,
                                 int64_t row, int64_t end)
{
    const int64_t n = gemm_half_least(job->columns - column, GEMM_HALF_PANEL);

    for (; row < end; row++) {
        const float *from = sums + row * GEMM_HALF_PANEL;
        float *y = (float *)job->y + row * job->step + column;

        if (n < GEMM_HALF_PANEL) {
            for (int64_t i = 0; i < n; i++)
                y[i] = job->add ? y[i] + from[i] : from[i];
            continue;
        }
        SIMD_UNROLL(2) for (int i = 0; i < GEMM_HALF_PANEL; i += LANES)
        {
            vec sum = simd_load(from + i);

            if (job->add)
                sum += simd_load_any(y + i);
            simd_store_any(y + i, sum);
        }
    }
}

/* Rows [row, end) of a panel's results, whose first column is `column`. */
SIMD_INLINE void gemm_half_put(const gemm_half_job *job, const float *sums, int64_t column,
                               int64_t row, int64_t end)
{
    if (job->half)
        gemm_half_put_half(job, sums, column, row, end);
    else
        gemm_half_put_floats(job, sums, column, row, end);
}
