/*
 * winograd3_lines8.h - Winograd's transforms of one row of vectors, for tiles of 7 and 8
 * (winograd3.h).
 *
 * The points are four pairs +-p and infinity, for tiles of 8 also 0: fractions of few bits,
 * searched for the smallest errors. What is computed of the even and of the odd elements serves
 * both of a pair.
 */
#define WINOGRAD3_PAIRS 4
#define WINOGRAD3_ZERO  (WINOGRAD3_TILE - 2 * WINOGRAD3_PAIRS + 1) /* whether 0 is a point */

#if WINOGRAD3_ZERO
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
#define WINOGRAD3_CUBIC(a, b, c)                                                                   \
    {                                                                                              \
        -((a) * (b) * (c)), (a) * (b) + (b) * (c) + (c) * (a), -((a) + (b) + (c))                  \
    }
/* The product of the differences between a point and all others, but for the sign. */
#define WINOGRAD3_NORM(q, p, a, b, c)                                                              \
    (2 * (WINOGRAD3_ZERO ? (q) : (p)) * ((q) - (a)) * ((q) - (b)) * ((q) - (c)))

static const float winograd3_point[WINOGRAD3_PAIRS] = {P0, P1, P2, P3};
static const float winograd3_square[WINOGRAD3_PAIRS] = {Q0, Q1, Q2, Q3};
/* Of the squares of all other pairs. */
static const float winograd3_cubic[WINOGRAD3_PAIRS][3] = {
    WINOGRAD3_CUBIC(Q1, Q2, Q3), WINOGRAD3_CUBIC(Q0, Q2, Q3), WINOGRAD3_CUBIC(Q0, Q1, Q3),
    WINOGRAD3_CUBIC(Q0, Q1, Q2)};
/* Of all squares: coefficients of (t - Q0) (t - Q1) (t - Q2) (t - Q3). */
static const float winograd3_quartic[WINOGRAD3_PAIRS] = {
    (Q0 * Q1) * (Q2 * Q3), -((Q0 + Q1) * (Q2 * Q3) + (Q2 + Q3) * (Q0 * Q1)),
    (Q0 + Q1) * (Q2 + Q3) + (Q0 * Q1) + (Q2 * Q3), -(Q0 + Q1 + Q2 + Q3)};
static const float winograd3_scale[WINOGRAD3_PAIRS] = {
    1 / WINOGRAD3_NORM(Q0, P0, Q1, Q2, Q3), 1 / WINOGRAD3_NORM(Q1, P1, Q0, Q2, Q3),
    1 / WINOGRAD3_NORM(Q2, P2, Q0, Q1, Q3), 1 / WINOGRAD3_NORM(Q3, P3, Q0, Q1, Q2)};

/* The products over all pairs, or over all but one, of every other element of x. */
SIMD_INLINE vec winograd3_all_pairs(const vec *x, int64_t by)
{
    vec sum = x[8 * by];

    SIMD_UNROLL(4)
    for (int i = 0; i < WINOGRAD3_PAIRS; i++)
        sum += winograd3_quartic[i] * x[2 * i * by];
    return sum;
}

SIMD_INLINE vec winograd3_other_pairs(const vec *x, int64_t by, int pair)
{
    vec sum = x[6 * by];

    SIMD_UNROLL(4)
    for (int i = 0; i < WINOGRAD3_PAIRS - 1; i++)
        sum += winograd3_cubic[pair][i] * x[2 * i * by];
    return sum;
}

SIMD_INLINE void winograd3_b(vec *y, int to, const vec *x, int64_t by)
{
    const vec *first = x + WINOGRAD3_ZERO * by;

    SIMD_UNROLL(4)
    for (int k = 0; k < WINOGRAD3_PAIRS; k++) {
        const vec even = winograd3_point[k] * winograd3_other_pairs(first, by, k),
                  odd = winograd3_other_pairs(first + by, by, k);

        y[2 * k * to] = even + odd;
        y[(2 * k + 1) * to] = WINOGRAD3_ZERO ? odd - even : even - odd;
    }
    y[2 * WINOGRAD3_PAIRS * to] = winograd3_all_pairs(x, by);
    if (WINOGRAD3_ZERO)
        y[(WINOGRAD3_PATCH - 1) * to] = winograd3_all_pairs(first, by);
}

SIMD_INLINE void winograd3_a(vec *y, const vec *x, int by)
{
    vec both[2][WINOGRAD3_PAIRS]; /* sums and differences, times powers of the points */

    SIMD_UNROLL(4)
    for (int k = 0; k < WINOGRAD3_PAIRS; k++) {
        both[0][k] = x[2 * k * by] + x[(2 * k + 1) * by];
        both[1][k] = winograd3_point[k] * (x[2 * k * by] - x[(2 * k + 1) * by]);
    }
    SIMD_UNROLL(8)
    for (int i = 0; i < WINOGRAD3_TILE; i++) {
        vec *part = both[i % 2];

        y[i * by] = (part[0] + part[1]) + (part[2] + part[3]);
        SIMD_UNROLL(4)
        for (int k = 0; k < WINOGRAD3_PAIRS; k++)
            part[k] *= winograd3_square[k];
    }
    if (WINOGRAD3_ZERO)
        y[0] += x[2 * WINOGRAD3_PAIRS * by];
    y[(WINOGRAD3_TILE - 1) * by] += x[(WINOGRAD3_PATCH - 1) * by];
}

SIMD_INLINE void winograd3_a_back(vec *y, int by, const vec *x, int64_t from)
{
    SIMD_UNROLL(4)
    for (int k = 0; k < WINOGRAD3_PAIRS; k++) {
        vec part[2] = {x[(WINOGRAD3_TILE - 1) / 2 * 2 * from],
                       x[(WINOGRAD3_TILE / 2 * 2 - 1) * from]};

        SIMD_UNROLL(8)
        for (int i = WINOGRAD3_TILE - 3; i >= 0; i--)
            part[i % 2] = part[i % 2] * winograd3_square[k] + x[i * from];
        part[1] *= winograd3_point[k];
        y[2 * k * by] = part[0] + part[1];
        y[(2 * k + 1) * by] = part[0] - part[1];
    }
    if (WINOGRAD3_ZERO)
        y[2 * WINOGRAD3_PAIRS * by] = x[0];
    y[(WINOGRAD3_PATCH - 1) * by] = x[(WINOGRAD3_TILE - 1) * from];
}

SIMD_INLINE void winograd3_g(vec *y, int by, const vec *x, int from)
{
    const vec x0 = x[0], x1 = x[from], x2 = x[2 * from];

    SIMD_UNROLL(4)
    for (int k = 0; k < WINOGRAD3_PAIRS; k++) {
        const vec even = (x0 + winograd3_square[k] * x2) * winograd3_scale[k],
                  odd = x1 * (winograd3_point[k] * winograd3_scale[k]);

        y[2 * k * by] = even + odd;
        y[(2 * k + 1) * by] = even - odd;
    }
    if (WINOGRAD3_ZERO)
        y[2 * WINOGRAD3_PAIRS * by] = x0 * (1 / winograd3_quartic[0]);
    y[(WINOGRAD3_PATCH - 1) * by] = x2;
}

SIMD_INLINE void winograd3_g_back(vec *y, int to, const vec *x, int by)
{
    vec even = {0}, odd = {0}, square = x[(WINOGRAD3_PATCH - 1) * by];

    SIMD_UNROLL(4)
    for (int k = 0; k < WINOGRAD3_PAIRS; k++) {
        const vec sum = (x[2 * k * by] + x[(2 * k + 1) * by]) * winograd3_scale[k],
                  difference = x[2 * k * by] - x[(2 * k + 1) * by];

        even += sum;
        square += sum * winograd3_square[k];
        odd += difference * (winograd3_point[k] * winograd3_scale[k]);
    }
    if (WINOGRAD3_ZERO)
        even += x[2 * WINOGRAD3_PAIRS * by] * (1 / winograd3_quartic[0]);
    y[0] = even;
    y[to] = odd;
    y[2 * to] = square;
}
