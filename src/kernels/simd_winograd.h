/*
 * simd_winograd.h - Winograd's transforms F(4, r) of one line of vectors (Lavin & Gray,
 * arXiv:1509.09308), for r of 3, 4 and 5: a constant in each use, as are all loops' bounds.
 * Included after LANES is defined. A line has r + 3 points, a patch as many elements.
 *
 * The points are pairs +-a, for odd r also 0, and infinity. Of all fractions with few bits these
 * have the smallest rounding errors that were found.
 */
#ifndef CO_KERNELS_SIMD_WINOGRAD_H
#define CO_KERNELS_SIMD_WINOGRAD_H

#include "kernels/simd.h"

#define SIMD_WINOGRAD_TILE      4 /* results */
#define SIMD_WINOGRAD_MOST_TAPS 5
#define SIMD_WINOGRAD_UNROLL    SIMD_UNROLL(8)

SIMD_INLINE int simd_winograd_pairs(const int r)
{
    return r == 3 ? 2 : 3;
}

/* Whether 0 is a point. */
SIMD_INLINE int simd_winograd_zero(const int r)
{
    return r % 2;
}

SIMD_INLINE float simd_winograd_point(const int r, const int i)
{
    if (r == 3)
        return i == 0 ? 0.625f : 1.5f;
    if (r == 4)
        return i == 0 ? 0.375f : i == 1 ? 0.875f : 1.75f;
    return i == 0 ? 0.5f : i == 1 ? 1 : 2;
}

SIMD_INLINE float simd_winograd_square(const int r, const int i)
{
    return simd_winograd_point(r, i) * simd_winograd_point(r, i);
}

/* The coefficient of x^(2 j) in the product of (x^2 - a^2) over all pairs but `without`. */
SIMD_INLINE float simd_winograd_factor(const int r, const int without, const int j)
{
    float c[4] = {1, 0, 0, 0};

    SIMD_WINOGRAD_UNROLL for (int i = 0; i < simd_winograd_pairs(r); i++)
    {
        const float square = i == without ? 0 : simd_winograd_square(r, i);

        if (i == without)
            continue;
        c[3] = c[2] - square * c[3];
        c[2] = c[1] - square * c[2];
        c[1] = c[0] - square * c[1];
        c[0] = -square * c[0];
    }
    return c[j];
}

/* The product of the differences between the first of a pair and all other points. */
SIMD_INLINE float simd_winograd_norm(const int r, const int pair)
{
    const float a = simd_winograd_point(r, pair);
    float n = simd_winograd_zero(r) ? 2 * a * a : 2 * a;

    SIMD_WINOGRAD_UNROLL for (int i = 0; i < simd_winograd_pairs(r); i++) if (i != pair) n *=
        simd_winograd_square(r, pair) - simd_winograd_square(r, i);
    return n;
}

/* y = B' x, r + 3 elements */
SIMD_INLINE void simd_winograd_b(vec *y, const int to, const vec *x, const int by, const int r)
{
    const int pairs = simd_winograd_pairs(r), zero = simd_winograd_zero(r);
    vec first = (vec){0}, last = (vec){0};

    SIMD_WINOGRAD_UNROLL for (int j = 0; j <= pairs; j++)
    {
        first += simd_winograd_factor(r, -1, j) * x[2 * j * by];
        last += simd_winograd_factor(r, -1, j) * x[(2 * j + zero) * by];
    }
    if (zero)
        y[0] = first;
    SIMD_WINOGRAD_UNROLL for (int i = 0; i < pairs; i++)
    {
        const float a = simd_winograd_point(r, i);
        vec low = (vec){0}, high = (vec){0};

        SIMD_WINOGRAD_UNROLL for (int j = 0; j < pairs; j++)
        {
            low += simd_winograd_factor(r, i, j) * x[(2 * j + zero) * by];
            high += simd_winograd_factor(r, i, j) * x[(2 * j + 1 + zero) * by];
        }
        y[(zero + 2 * i) * to] = high + a * low;
        y[(zero + 2 * i + 1) * to] = high - a * low;
    }
    y[(r + 2) * to] = last;
}

/* y = A' x, from r + 3 elements to 4 */
SIMD_INLINE void simd_winograd_a(vec *y, const int to, const vec *x, const int by, const int r)
{
    const int zero = simd_winograd_zero(r);
    vec sum[SIMD_WINOGRAD_TILE] = {zero ? x[0] : (vec){0}, (vec){0}, (vec){0}, x[(r + 2) * by]};

    SIMD_WINOGRAD_UNROLL for (int i = 0; i < simd_winograd_pairs(r); i++)
    {
        const float a = simd_winograd_point(r, i);
        const vec one = x[(zero + 2 * i) * by], other = x[(zero + 2 * i + 1) * by];
        const vec even = one + other, odd = one - other;

        sum[0] += even;
        sum[1] += a * odd;
        sum[2] += a * a * even;
        sum[3] += a * a * a * odd;
    }
    SIMD_WINOGRAD_UNROLL for (int i = 0; i < SIMD_WINOGRAD_TILE; i++) y[i * to] = sum[i];
}

/* y = A x, from 4 elements to r + 3 */
SIMD_INLINE void simd_winograd_a_back(vec *y, const int to, const vec *x, const int by, const int r)
{
    const int zero = simd_winograd_zero(r);

    if (zero)
        y[0] = x[0];
    SIMD_WINOGRAD_UNROLL for (int i = 0; i < simd_winograd_pairs(r); i++)
    {
        const float a = simd_winograd_point(r, i);
        const vec even = x[0] + a * a * x[2 * by], odd = x[by] + a * a * x[3 * by];

        y[(zero + 2 * i) * to] = even + a * odd;
        y[(zero + 2 * i + 1) * to] = even - a * odd;
    }
    y[(r + 2) * to] = x[3 * by];
}

/* y = G x, from r elements to r + 3. Without 0 among the points a pair's norms have two signs. */
SIMD_INLINE void simd_winograd_g(vec *y, const int to, const vec *x, const int by, const int r)
{
    const int zero = simd_winograd_zero(r);

    if (zero)
        y[0] = x[0] * (1 / simd_winograd_factor(r, -1, 0));
    SIMD_WINOGRAD_UNROLL for (int i = 0; i < simd_winograd_pairs(r); i++)
    {
        const float a = simd_winograd_point(r, i);
        vec even = x[0] + a * a * x[2 * by], odd = a * x[by];

        if (r > 3)
            odd += a * a * a * x[3 * by];
        if (r > 4)
            even += a * a * a * a * x[4 * by];
        y[(zero + 2 * i) * to] = (even + odd) * (1 / simd_winograd_norm(r, i));
        y[(zero + 2 * i + 1) * to] =
            (zero ? even - odd : odd - even) * (1 / simd_winograd_norm(r, i));
    }
    y[(r + 2) * to] = x[(r - 1) * by];
}

/* y = G' x, from r + 3 elements to r */
SIMD_INLINE void simd_winograd_g_back(vec *y, const int to, const vec *x, const int by, const int r)
{
    const int zero = simd_winograd_zero(r);
    vec sum[SIMD_WINOGRAD_MOST_TAPS] = {{0}};

    if (zero)
        sum[0] = x[0] * (1 / simd_winograd_factor(r, -1, 0));
    SIMD_WINOGRAD_UNROLL for (int i = 0; i < simd_winograd_pairs(r); i++)
    {
        const float a = simd_winograd_point(r, i), scale = 1 / simd_winograd_norm(r, i);
        const vec one = x[(zero + 2 * i) * by], other = x[(zero + 2 * i + 1) * by];
        const vec even = scale * (zero ? one + other : one - other);
        const vec odd = scale * (zero ? one - other : one + other);

        sum[0] += even;
        sum[1] += a * odd;
        sum[2] += a * a * even;
        sum[3] += a * a * a * odd;
        sum[4] += a * a * a * a * even;
    }
    sum[r - 1] += x[(r + 2) * by];
    SIMD_WINOGRAD_UNROLL for (int i = 0; i < r; i++) y[i * to] = sum[i];
}

#endif
