/*
 * winograd_lines4.h - Winograd's transforms of one row of vectors, for tiles of 4 (winograd.h).
 *
 * The points are 0, +-5/8, +-3/2 and infinity: with all fractions, these have a third of the
 * rounding error of 0, +-1, +-2.
 */
/* Squares of the points and their products. */
#define A  0.625f
#define B  1.5f
#define AA (A * A)
#define BB (B * B)
/* Products of the differences between a point and all others. */
#define N_0 (AA * BB)
#define N_A (2 * AA * (AA - BB))
#define N_B (2 * BB * (BB - AA))

/* --- transforms of one line: `by` vectors from one element to the next --- */

/* y = B' x */
SIMD_INLINE void winograd_b(vec *y, int to, const vec *x, int64_t by)
{
    const vec x1 = x[by], x2 = x[2 * by], x3 = x[3 * by], x4 = x[4 * by];
    const vec even_a = x4 - BB * x2, odd_a = x3 - BB * x1;
    const vec even_b = x4 - AA * x2, odd_b = x3 - AA * x1;

    y[0] = x[0] * N_0 + (x4 - (AA + BB) * x2);
    y[to] = even_a + A * odd_a;
    y[2 * to] = even_a - A * odd_a;
    y[3 * to] = even_b + B * odd_b;
    y[4 * to] = even_b - B * odd_b;
    y[5 * to] = x1 * N_0 + (x[5 * by] - (AA + BB) * x3);
}

/* y = A' x */
SIMD_INLINE void winograd_a(vec *y, const vec *x, int by)
{
    const vec sum_a = x[by] + x[2 * by], diff_a = x[by] - x[2 * by];
    const vec sum_b = x[3 * by] + x[4 * by], diff_b = x[3 * by] - x[4 * by];

    y[0] = x[0] + sum_a + sum_b;
    y[by] = A * diff_a + B * diff_b;
    y[2 * by] = AA * sum_a + BB * sum_b;
    y[3 * by] = A * AA * diff_a + (B * BB * diff_b + x[5 * by]);
}

/* y = A x, four elements `from` apart */
SIMD_INLINE void winograd_a_back(vec *y, int by, const vec *x, int64_t from)
{
    const vec x0 = x[0], x1 = x[from], x2 = x[2 * from], x3 = x[3 * from];
    const vec even_a = x0 + AA * x2, odd_a = x1 + AA * x3;
    const vec even_b = x0 + BB * x2, odd_b = x1 + BB * x3;

    y[0] = x0;
    y[by] = even_a + A * odd_a;
    y[2 * by] = even_a - A * odd_a;
    y[3 * by] = even_b + B * odd_b;
    y[4 * by] = even_b - B * odd_b;
    y[5 * by] = x3;
}

/* y = G x, three elements `from` apart */
SIMD_INLINE void winograd_g(vec *y, int by, const vec *x, int from)
{
    const vec x0 = x[0], x1 = x[from], x2 = x[2 * from];
    const vec even_a = (x0 + AA * x2) * (1 / N_A), odd_a = x1 * (A / N_A);
    const vec even_b = (x0 + BB * x2) * (1 / N_B), odd_b = x1 * (B / N_B);

    y[0] = x0 * (1 / N_0);
    y[by] = even_a + odd_a;
    y[2 * by] = even_a - odd_a;
    y[3 * by] = even_b + odd_b;
    y[4 * by] = even_b - odd_b;
    y[5 * by] = x2;
}

/* y = G' x, to three elements `to` apart */
SIMD_INLINE void winograd_g_back(vec *y, int to, const vec *x, int by)
{
    const vec sum_a = x[by] + x[2 * by], diff_a = x[by] - x[2 * by];
    const vec sum_b = x[3 * by] + x[4 * by], diff_b = x[3 * by] - x[4 * by];

    y[0] = x[0] * (1 / N_0) + (sum_a * (1 / N_A) + sum_b * (1 / N_B));
    y[to] = diff_a * (A / N_A) + diff_b * (B / N_B);
    y[2 * to] = sum_a * (AA / N_A) + (sum_b * (BB / N_B) + x[5 * by]);
}
