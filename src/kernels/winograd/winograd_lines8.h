/*
 * winograd_lines8.h - Winograd's transforms of one row of vectors, for tiles of 7 and 8
 * (winograd.h).
 *
 * The points are four pairs +-p and infinity, for tiles of 8 also 0: fractions of few bits,
 * searched for the smallest errors. What is computed of the even and of the odd elements serves
 * both of a pair.
 */
#define WINOGRAD_PAIRS 4
#define WINOGRAD_ZERO  (WINOGRAD_TILE - 2 * WINOGRAD_PAIRS + 1) /* whether 0 is a point */

#if WINOGRAD_ZERO
#define P0 0.5f
#define P1 0.875f
#define P2 1.25f
#define P3 2.5f
#else
#define P0 0.25f
#define P1 0.75f
#define P2 1.125f
#define P3 2.25f
#endif
#define Q0 (P0 * P0)
#define Q1 (P1 * P1)
#define Q2 (P2 * P2)
#define Q3 (P3 * P3)

/* Coefficients of (t - a) (t - b) (t - c), lowest first. */
#define WINOGRAD_CUBIC(a, b, c)                                                                    \
    {                                                                                              \
        -((a) * (b) * (c)), (a) * (b) + (b) * (c) + (c) * (a), -((a) + (b) + (c))                  \
    }
/* The product of the differences between a point and all others, but for the sign. */
#define WINOGRAD_NORM(q, p, a, b, c)                                                               \
    (2 * (WINOGRAD_ZERO ? (q) : (p)) * ((q) - (a)) * ((q) - (b)) * ((q) - (c)))

static const float winograd_point[WINOGRAD_PAIRS] = {P0, P1, P2, P3};
static const float winograd_square[WINOGRAD_PAIRS] = {Q0, Q1, Q2, Q3};
/* Of the squares of all other pairs. */
static const float winograd_cubic[WINOGRAD_PAIRS][3] = {
    WINOGRAD_CUBIC(Q1, Q2, Q3), WINOGRAD_CUBIC(Q0, Q2, Q3), WINOGRAD_CUBIC(Q0, Q1, Q3),
    WINOGRAD_CUBIC(Q0, Q1, Q2)};
/* Of all squares: coefficients of (t - Q0) (t - Q1) (t - Q2) (t - Q3). */
static const float winograd_quartic[WINOGRAD_PAIRS] = {
    (Q0 * Q1) * (Q2 * Q3), -((Q0 + Q1) * (Q2 * Q3) + (Q2 + Q3) * (Q0 * Q1)),
    (Q0 + Q1) * (Q2 + Q3) + (Q0 * Q1) + (Q2 * Q3), -(Q0 + Q1 + Q2 + Q3)};
static const float winograd_scale[WINOGRAD_PAIRS] = {
    1 / WINOGRAD_NORM(Q0, P0, Q1, Q2, Q3), 1 / WINOGRAD_NORM(Q1, P1, Q0, Q2, Q3),
    1 / WINOGRAD_NORM(Q2, P2, Q0, Q1, Q3), 1 / WINOGRAD_NORM(Q3, P3, Q0, Q1, Q2)};

/* The products over all pairs, or over all but one, of every other element of x. */
SIMD_INLINE vec winograd_all_pairs(const vec *x, int64_t by)
{
    vec sum = x[8 * by];

    SIMD_UNROLL(4)
    for (int i = 0; i < WINOGRAD_PAIRS; i++)
        sum += winograd_quartic[i] * x[2 * i * by];
    return sum;
}

SIMD_INLINE vec winograd_other_pairs(const vec *x, int64_t by, int pair)
{
    vec sum = x[6 * by];

    SIMD_UNROLL(4)
    for (int i = 0; i < WINOGRAD_PAIRS - 1; i++)
        sum += winograd_cubic[pair][i] * x[2 * i * by];
    return sum;
}

SIMD_INLINE void winograd_b(vec *y, int to, const vec *x, int64_t by)
{
    const vec *first = x + WINOGRAD_ZERO * by;

    SIMD_UNROLL(4)
    for (int k = 0; k < WINOGRAD_PAIRS; k++) {
        const vec even = winograd_point[k] * winograd_other_pairs(first, by, k),
                  odd = winograd_other_pairs(first + by, by, k);

        y[2 * k * to] = even + odd;
        y[(2 * k + 1) * to] = WINOGRAD_ZERO ? odd - even : even - odd;
    }
    y[2 * WINOGRAD_PAIRS * to] = winograd_all_pairs(x, by);
    if (WINOGRAD_ZERO)
        y[(WINOGRAD_PATCH - 1) * to] = winograd_all_pairs(first, by);
}

SIMD_INLINE void winograd_a(vec *y, const vec *x, int by)
{
    vec both[2][WINOGRAD_PAIRS]; /* sums and differences, times powers of the points */

    SIMD_UNROLL(4)
    for (int k = 0; k < WINOGRAD_PAIRS; k++) {
        both[0][k] = x[2 * k * by] + x[(2 * k + 1) * by];
        both[1][k] = winograd_point[k] * (x[2 * k * by] - x[(2 * k + 1) * by]);
    }
    SIMD_UNROLL(8)
    for (int i = 0; i < WINOGRAD_TILE; i++) {
        vec *part = both[i % 2];

        y[i * by] = (part[0] + part[1]) + (part[2] + part[3]);
        SIMD_UNROLL(4)
        for (int k = 0; k < WINOGRAD_PAIRS; k++)
            part[k] *= winograd_square[k];
    }
    if (WINOGRAD_ZERO)
        y[0] += x[2 * WINOGRAD_PAIRS * by];
    y[(WINOGRAD_TILE - 1) * by] += x[(WINOGRAD_PATCH - 1) * by];
}

SIMD_INLINE void winograd_a_back(vec *y, int by, const vec *x, int64_t from)
{
    SIMD_UNROLL(4)
    for (int k = 0; k < WINOGRAD_PAIRS; k++) {
        vec part[2] = {x[(WINOGRAD_TILE - 1) / 2 * 2 * from],
                       x[(WINOGRAD_TILE / 2 * 2 - 1) * from]};

        SIMD_UNROLL(8)
        for (int i = WINOGRAD_TILE - 3; i >= 0; i--)
            part[i % 2] = part[i % 2] * winograd_square[k] + x[i * from];
        part[1] *= winograd_point[k];
        y[2 * k * by] = part[0] + part[1];
        y[(2 * k + 1) * by] = part[0] - part[1];
    }
    if (WINOGRAD_ZERO)
        y[2 * WINOGRAD_PAIRS * by] = x[0];
    y[(WINOGRAD_PATCH - 1) * by] = x[(WINOGRAD_TILE - 1) * from];
}

SIMD_INLINE void winograd_g(vec *y, int by, const vec *x, int from)
{
    const vec x0 = x[0], x1 = x[from], x2 = x[2 * from];

    SIMD_UNROLL(4)
    for (int k = 0; k < WINOGRAD_PAIRS; k++) {
        const vec even = (x0 + winograd_square[k] * x2) * winograd_scale[k],
                  odd = x1 * (winograd_point[k] * winograd_scale[k]);

        y[2 * k * by] = even + odd;
        y[(2 * k + 1) * by] = even - odd;
    }
    if (WINOGRAD_ZERO)
        y[2 * WINOGRAD_PAIRS * by] = x0 * (1 / winograd_quartic[0]);
    y[(WINOGRAD_PATCH - 1) * by] = x2;
}

SIMD_INLINE void winograd_g_back(vec *y, int to, const vec *x, int by)
{
    vec even = {0}, odd = {0}, square = x[(WINOGRAD_PATCH - 1) * by];

    SIMD_UNROLL(4)
    for (int k = 0; k < WINOGRAD_PAIRS; k++) {
        const vec sum = (x[2 * k * by] + x[(2 * k + 1) * by]) * winograd_scale[k],
                  difference = x[2 * k * by] - x[(2 * k + 1) * by];

        even += sum;
        square += sum * winograd_square[k];
        odd += difference * (winograd_point[k] * winograd_scale[k]);
    }
    if (WINOGRAD_ZERO)
        even += x[2 * WINOGRAD_PAIRS * by] * (1 / winograd_quartic[0]);
    y[0] = even;
    y[to] = odd;
    y[2 * to] = square;
}
