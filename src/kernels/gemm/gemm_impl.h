/*
 * gemm_impl.h - the loops of gemm.h. Included once for each instruction set, by a file that
 * defines
 *
 *   LANES                        of a vector
 *   GEMM_TABLE, GEMM_NAME        the table of loops and its name in profiles
 *   GEMM_N                       rows of x that meet GEMM_O rows of w
 *   GEMM_ROWS                    rows that two vectors of a panel are added to
 *   gemm_four gemm_join(v)       (a, b, c, d): the sums of four vectors' lanes, and its type
 *
 * Independent of calls, tensors and plans.
 */
#include <string.h>

#include "kernels/gemm/gemm.h"
#include "kernels/simd_tile.h"

#define GEMM_O 4

/* One step along the rows: `o` vectors of w times `n` of x. */
SIMD_INLINE void gemm_meet(vec (*sum)[GEMM_O], const vec *x, const vec *w, const int n, const int o)
{
    SIMD_UNROLL(16)
    for (int q = 0; q < o; q++)
        SIMD_UNROLL(16) for (int p = 0; p < n; p++) sum[p][q] += x[p] * w[q];
}

/* The (n, o) products of rows of x and w. */
SIMD_INLINE void gemm_multiply_tile(float *y, int64_t step, const gemm_rows *x, const gemm_rows *w,
                                    const float *bias, int64_t k, bool add, const float *next,
                                    const int n, const int o)
{
    const int64_t whole = k / LANES * LANES;
    vec sum[GEMM_N][GEMM_O], a[GEMM_N], b[GEMM_O];
    float first[GEMM_O] = {0};

    SIMD_UNROLL(16)
    for (int p = 0; p < n; p++)
        SIMD_UNROLL(16) for (int q = 0; q < GEMM_O; q++) sum[p][q] = (vec){0};
    for (int64_t i = 0; i < whole; i += LANES) {
        SIMD_UNROLL(16)
        for (int q = 0; q < o; q++)
            __builtin_prefetch(next + q * w->step + i, 0, 2);
        SIMD_UNROLL(16) for (int q = 0; q < o; q++) b[q] = simd_load_any(w->at + q * w->step + i);
        SIMD_UNROLL(16) for (int p = 0; p < n; p++) a[p] = simd_load_any(x->at + p * x->step + i);
        gemm_meet(sum, a, b, n, o);
    }
    if (whole < k) {
        SIMD_UNROLL(16)
        for (int q = 0; q < o; q++)
            b[q] = simd_load_some(w->at + q * w->step + whole, k - whole);
        SIMD_UNROLL(16)
        for (int p = 0; p < n; p++)
            a[p] = simd_load_some(x->at + p * x->step + whole, k - whole);
        gemm_meet(sum, a, b, n, o);
    }
    for (int q = 0; bias && q < o; q++)
        first[q] = bias[q];
    SIMD_UNROLL(16) for (int p = 0; p < n; p++)
    {
        const gemm_four all = gemm_join(sum[p]);
        float *to = y + p * step, each[GEMM_O];

        memcpy(each, &all, sizeof(all));
        SIMD_UNROLL(16) for (int q = 0; q < o; q++) to[q] = each[q] + (add ? to[q] : first[q]);
    }
}

#define GEMM_CASE(n)                                                                               \
    case n:                                                                                        \
        if (o == 4)                                                                                \
            gemm_multiply_tile(y, step, x, w, bias, k, add, next, n, 4);                           \
        else if (o == 3)                                                                           \
            gemm_multiply_tile(y, step, x, w, bias, k, add, next, n, 3);                           \
        else if (o == 2)                                                                           \
            gemm_multiply_tile(y, step, x, w, bias, k, add, next, n, 2);                           \
        else                                                                                       \
            gemm_multiply_tile(y, step, x, w, bias, k, add, next, n, 1);                           \
        break;

/* The tile's size is a constant in each branch. */
static void gemm_multiply_some(float *y, int64_t step, const gemm_rows *x, const gemm_rows *w,
                               const float *bias, int64_t k, bool add, const float *next, int n,
                               int o)
{
    switch (n) {
        GEMM_CASE(1)
        GEMM_CASE(2)
        GEMM_CASE(3)
#if GEMM_N > 3
        GEMM_CASE(4)
        GEMM_CASE(5)
        GEMM_CASE(6)
#endif
    default:
        break;
    }
}

/* Part i of n rows in `parts` parts that differ by one at most. */
SIMD_INLINE int64_t gemm_begin(int64_t n, int64_t parts, int64_t i)
{
    return n * i / parts;
}

static void gemm_multiply(const gemm_rows *y, const gemm_rows *x, const gemm_rows *w,
                          const float *bias, int64_t k, bool add)
{
    const int64_t parts = (x->n + GEMM_N - 1) / GEMM_N;

    for (int64_t o = 0; o < w->n; o += GEMM_O) {
        const int no = w->n - o < GEMM_O ? (int)(w->n - o) : GEMM_O;
        const gemm_rows some = {w->at + o * w->step, no, w->step};
        const float *next = o + 2 * GEMM_O <= w->n ? some.at + GEMM_O * w->step : some.at;

        for (int64_t i = 0; i < parts; i++) {
            const int64_t n = gemm_begin(x->n, parts, i), end = gemm_begin(x->n, parts, i + 1);
            const gemm_rows rows = {x->at + n * x->step, end - n, x->step};

            gemm_multiply_some(y->at + n * y->step + o, y->step, &rows, &some,
                               bias ? bias + o : NULL, k, add, next, (int)(end - n), no);
        }
    }
}

/* --- sums of rows --- */

/* Rows of one vector, of which the next overwrites what is beyond `width`. */
static void gemm_pack_narrow(float *to, int64_t width, const gemm_rows *from, int64_t columns)
{
    for (int64_t l = 0; l < from->n; l++, to += width) {
        const float *row = from->at + l * from->step;

        __builtin_prefetch(row + 2 * LANES, 0, 2);
        simd_store_any(to, simd_load_some(row, columns));
    }
}

/* Of n columns, those of one vector. */
SIMD_INLINE int64_t gemm_lanes(int64_t n)
{
    return n < 0 ? 0 : n < LANES ? n : LANES;
}

/* Prefetches the rows of the panel to the right: each is on another page. With short vectors a tile
   of rows is wider than a panel. */
static void gemm_pack(float *to, int64_t width, const gemm_rows *from, int64_t columns)
{
    const int64_t first = gemm_lanes(columns), second = gemm_lanes(columns - LANES);

    if (width <= LANES) {
        gemm_pack_narrow(to, width, from, columns);
        return;
    }
    for (int64_t l = 0; l < from->n; l++, to += width) {
        const float *row = from->at + l * from->step;

        __builtin_prefetch(row + 2 * LANES, 0, 2);
        __builtin_prefetch(row + 3 * LANES, 0, 2);
        simd_store_any(to, simd_load_some(row, first));
        simd_store_any(to + LANES, simd_load_some(row + first, second));
        for (int64_t i = 2 * LANES; i < width; i += LANES)
            simd_store_any(to + i, simd_load_some(row + i, gemm_lanes(columns - i)));
    }
}

/* LANES rows from row i, from column l, as columns; those beyond the end are zeros. */
SIMD_INLINE void gemm_turn_square(float *to, int64_t width, const gemm_rows *from, int64_t i,
                                  int64_t l, int64_t k)
{
    const int64_t some = k - l < LANES ? k - l : LANES;
    vec v[LANES];

    SIMD_UNROLL(16) for (int r = 0; r < LANES; r++)
    {
        const float *row = from->at + (i + r) * from->step + l;

        __builtin_prefetch(row + 4 * LANES, 0, 2); /* more rows than a CPU follows by itself */
        v[r] = i + r >= from->n ? (vec){0}
               : some == LANES  ? simd_load_any(row)
                                : simd_load_some(row, some);
    }
    simd_transpose(v);
    for (int r = 0; r < some; r++)
        simd_store_any(to + (l + r) * width + i, v[r]);
}

/* From right to left, as a square overwrites what follows a row of `to`. */
static void gemm_turn(float *to, int64_t width, const gemm_rows *from, int64_t k)
{
    for (int64_t l = 0; l < k; l += LANES)
        for (int64_t i = (width - 1) / LANES * LANES; i >= 0; i -= LANES)
            gemm_turn_square(to, width, from, i, l, k);
}

SIMD_INLINE void gemm_add_tile(const gemm_rows *to, int64_t columns, const float *number,
                               const float *panel, int64_t l, bool add, const int rows,
                               const bool whole)
{
    const int64_t first = columns < LANES ? columns : LANES, second = columns - first;
    simd_tile_row sum[GEMM_ROWS];

    simd_tile_clear(sum, rows, 2);
    for (int p = 0; add && p < rows; p++) {
        __builtin_prefetch(to->at + p * to->step, 1);
        __builtin_prefetch(to->at + p * to->step + LANES, 1);
    }
    SIMD_UNROLL_BY(4)
    for (int64_t i = 0; i < l; i++, number += rows, panel += 2 * LANES)
        simd_tile_add(sum, number, 1, panel, LANES, rows, 2);
    SIMD_UNROLL(16) for (int p = 0; p < rows; p++)
    {
        float *row = to->at + p * to->step;

        if (whole) {
            if (add) {
                sum[p][0] += simd_load_any(row);
                sum[p][1] += simd_load_any(row + LANES);
            }
            simd_store_any(row, sum[p][0]);
            simd_store_any(row + LANES, sum[p][1]);
        } else {
            if (add) {
                sum[p][0] += simd_load_some(row, first);
                sum[p][1] += simd_load_some(row + first, second);
            }
            simd_store_some(row, sum[p][0], first);
            simd_store_some(row + first, sum[p][1], second);
        }
    }
}

#define GEMM_ADD_CASE(n)                                                                           \
    case n:                                                                                        \
        if (columns == 2 * LANES)                                                                  \
            gemm_add_tile(to, columns, number, panel, l, add, n, true);                            \
        else                                                                                       \
            gemm_add_tile(to, columns, number, panel, l, add, n, false);                           \
        break;

/* The tile's size is a constant in each branch. */
static void gemm_add_up(const gemm_rows *to, int64_t columns, const float *number,
                        const float *panel, int64_t l, bool add)
{
    switch (to->n) {
        GEMM_ADD_CASE(1)
        GEMM_ADD_CASE(2)
        GEMM_ADD_CASE(3)
        GEMM_ADD_CASE(4)
        GEMM_ADD_CASE(5)
        GEMM_ADD_CASE(6)
#if GEMM_ROWS > 6
        GEMM_ADD_CASE(7)
        GEMM_ADD_CASE(8)
        GEMM_ADD_CASE(9)
        GEMM_ADD_CASE(10)
        GEMM_ADD_CASE(11)
        GEMM_ADD_CASE(12)
        GEMM_ADD_CASE(13)
        GEMM_ADD_CASE(14)
#endif
    default:
        break;
    }
}

/* Four sums at a time hide what an addition takes. */
static void gemm_sum(float *sum, int64_t n, const float *number, int64_t l)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t some = n - i < LANES ? n - i : LANES;
        const float *from = number + i;
        vec part[4] = {simd_load_some(sum + i, some)};
        int64_t k = 0;

        for (; k + 4 <= l; k += 4, from += 4 * n)
            SIMD_UNROLL(4)
        for (int p = 0; p < 4; p++)
            part[p] += simd_load_some(from + p * n, some);
        for (; k < l; k++, from += n)
            part[0] += simd_load_some(from, some);
        simd_store_some(sum + i, (part[0] + part[1]) + (part[2] + part[3]), some);
    }
}

const gemm_loops GEMM_TABLE = {
    .name = GEMM_NAME,
    .width = 2 * LANES,
    .rows = GEMM_ROWS,
    .multiply = gemm_multiply,
    .pack = gemm_pack,
    .turn = gemm_turn,
    .add_up = gemm_add_up,
    .sum = gemm_sum,
};
