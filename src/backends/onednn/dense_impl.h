/*
 * dense_impl.h - the loops of dense.h. Included once for each instruction set, by a file that
 * defines
 *
 *   LANES                        of a vector
 *   DENSE_TABLE, DENSE_NAME      the table of loops and its name in profiles
 *   DENSE_N                      rows of x that meet DENSE_O rows of w
 *   DENSE_ROWS                   rows that two vectors of a panel are added to
 *   vec dense_take(from, n)      the first n floats, and zeros; n at most LANES
 *   void dense_put(to, v, n)     of v the first n
 *   vec dense_splat(const float *)
 *   __m128 dense_join(v)         (a, b, c, d): the sums of four vectors' lanes
 *
 * Must not know calls, tensors or plans.
 */
#include "backends/onednn/dense.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* With a check at each access, unrolled loops would take the compiler minutes. */
#define DENSE_INLINE static
#define DENSE_UNROLL
#else
#define DENSE_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define DENSE_UNROLL _Pragma("unroll")
#else
#define DENSE_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#define DENSE_O 4

DENSE_INLINE vec dense_load(const float *from)
{
    return *(const loose_vec *)from;
}

/* One step along the rows: `o` vectors of w, `n` of x. */
DENSE_INLINE void dense_meet(vec (*sum)[DENSE_O], const vec *x, const vec *w, const int n,
                             const int o)
{
    DENSE_UNROLL for (int q = 0; q < o; q++) DENSE_UNROLL for (int p = 0; p < n; p++) sum[p][q] +=
        x[p] * w[q];
}

/* y (n, o) of rows of x and w. */
DENSE_INLINE void dense_multiply_tile(float *y, int64_t step, const dense_rows *x,
                                      const dense_rows *w, const float *bias, int64_t k, bool add,
                                      const float *next, const int n, const int o)
{
    const int64_t whole = k / LANES * LANES;
    vec sum[DENSE_N][DENSE_O], a[DENSE_N], b[DENSE_O];
    float first[DENSE_O] = {0};

    DENSE_UNROLL for (int p = 0; p < n; p++) DENSE_UNROLL for (int q = 0; q < DENSE_O; q++)
        sum[p][q] = (vec){0};
    for (int64_t i = 0; i < whole; i += LANES) {
        DENSE_UNROLL for (int q = 0; q < o; q++) __builtin_prefetch(next + q * w->step + i, 0, 2);
        DENSE_UNROLL for (int q = 0; q < o; q++) b[q] = dense_load(w->at + q * w->step + i);
        DENSE_UNROLL for (int p = 0; p < n; p++) a[p] = dense_load(x->at + p * x->step + i);
        dense_meet(sum, a, b, n, o);
    }
    if (whole < k) {
        DENSE_UNROLL for (int q = 0; q < o; q++) b[q] =
            dense_take(w->at + q * w->step + whole, k - whole);
        DENSE_UNROLL for (int p = 0; p < n; p++) a[p] =
            dense_take(x->at + p * x->step + whole, k - whole);
        dense_meet(sum, a, b, n, o);
    }
    for (int q = 0; bias && q < o; q++)
        first[q] = bias[q];
    DENSE_UNROLL for (int p = 0; p < n; p++)
    {
        const __m128 all = dense_join(sum[p]);
        float *to = y + p * step, each[DENSE_O];

        _mm_storeu_ps(each, all);
        DENSE_UNROLL for (int q = 0; q < o; q++) to[q] = each[q] + (add ? to[q] : first[q]);
    }
}

#define DENSE_CASE(n)                                                                              \
    case n:                                                                                        \
        if (o == 4)                                                                                \
            dense_multiply_tile(y, step, x, w, bias, k, add, next, n, 4);                          \
        else if (o == 3)                                                                           \
            dense_multiply_tile(y, step, x, w, bias, k, add, next, n, 3);                          \
        else if (o == 2)                                                                           \
            dense_multiply_tile(y, step, x, w, bias, k, add, next, n, 2);                          \
        else                                                                                       \
            dense_multiply_tile(y, step, x, w, bias, k, add, next, n, 1);                          \
        break;

/* The tile's size is a constant in each branch. */
static void dense_multiply_some(float *y, int64_t step, const dense_rows *x, const dense_rows *w,
                                const float *bias, int64_t k, bool add, const float *next, int n,
                                int o)
{
    switch (n) {
        DENSE_CASE(1)
        DENSE_CASE(2)
        DENSE_CASE(3)
#if DENSE_N > 3
        DENSE_CASE(4)
        DENSE_CASE(5)
        DENSE_CASE(6)
#endif
    default:
        break;
    }
}

/* Part i of n rows in `parts` parts that differ by one at most. */
DENSE_INLINE int64_t dense_begin(int64_t n, int64_t parts, int64_t i)
{
    return n * i / parts;
}

static void dense_multiply(const dense_rows *y, const dense_rows *x, const dense_rows *w,
                           const float *bias, int64_t k, bool add)
{
    const int64_t parts = (x->n + DENSE_N - 1) / DENSE_N;

    for (int64_t o = 0; o < w->n; o += DENSE_O) {
        const int no = w->n - o < DENSE_O ? (int)(w->n - o) : DENSE_O;
        const dense_rows some = {w->at + o * w->step, no, w->step};
        const float *next = o + 2 * DENSE_O <= w->n ? some.at + DENSE_O * w->step : some.at;

        for (int64_t i = 0; i < parts; i++) {
            const int64_t n = dense_begin(x->n, parts, i), end = dense_begin(x->n, parts, i + 1);
            const dense_rows rows = {x->at + n * x->step, end - n, x->step};

            dense_multiply_some(y->at + n * y->step + o, y->step, &rows, &some,
                                bias ? bias + o : NULL, k, add, next, (int)(end - n), no);
        }
    }
}

/* --- sums of rows --- */

/* The rows of the panel to the right are asked for on the way: each is on another page. */
static void dense_pack(float *panel, const dense_rows *from, int64_t columns)
{
    const int64_t first = columns < LANES ? columns : LANES, second = columns - first;

    for (int64_t l = 0; l < from->n; l++, panel += 2 * LANES) {
        const float *row = from->at + l * from->step;

        __builtin_prefetch(row + 2 * LANES, 0, 2);
        __builtin_prefetch(row + 3 * LANES, 0, 2);
        *(vec *)panel = dense_take(row, first);
        *(vec *)(panel + LANES) = dense_take(row + first, second);
    }
}

DENSE_INLINE void dense_add_tile(const dense_rows *to, int64_t columns, const float *number,
                                 const float *panel, int64_t l, bool add, const int rows,
                                 const bool whole)
{
    const int64_t first = columns < LANES ? columns : LANES, second = columns - first;
    vec sum[DENSE_ROWS][2];

    DENSE_UNROLL for (int p = 0; p < rows; p++) sum[p][0] = sum[p][1] = (vec){0};
    for (int64_t i = 0; i < l; i++, number += rows, panel += 2 * LANES) {
        const vec a = *(const vec *)panel, b = *(const vec *)(panel + LANES);

        DENSE_UNROLL for (int p = 0; p < rows; p++)
        {
            const vec each = dense_splat(number + p);

            sum[p][0] += each * a;
            sum[p][1] += each * b;
        }
    }
    DENSE_UNROLL for (int p = 0; p < rows; p++)
    {
        float *row = to->at + p * to->step;

        if (whole) {
            if (add) {
                sum[p][0] += dense_load(row);
                sum[p][1] += dense_load(row + LANES);
            }
            *(loose_vec *)row = sum[p][0];
            *(loose_vec *)(row + LANES) = sum[p][1];
        } else {
            if (add) {
                sum[p][0] += dense_take(row, first);
                sum[p][1] += dense_take(row + first, second);
            }
            dense_put(row, sum[p][0], first);
            dense_put(row + first, sum[p][1], second);
        }
    }
}

#define DENSE_ADD_CASE(n)                                                                          \
    case n:                                                                                        \
        if (columns == 2 * LANES)                                                                  \
            dense_add_tile(to, columns, number, panel, l, add, n, true);                           \
        else                                                                                       \
            dense_add_tile(to, columns, number, panel, l, add, n, false);                          \
        break;

/* The tile's size is a constant in each branch. */
static void dense_add_up(const dense_rows *to, int64_t columns, const float *number,
                         const float *panel, int64_t l, bool add)
{
    switch (to->n) {
        DENSE_ADD_CASE(1)
        DENSE_ADD_CASE(2)
        DENSE_ADD_CASE(3)
        DENSE_ADD_CASE(4)
        DENSE_ADD_CASE(5)
        DENSE_ADD_CASE(6)
#if DENSE_ROWS > 6
        DENSE_ADD_CASE(7)
        DENSE_ADD_CASE(8)
        DENSE_ADD_CASE(9)
        DENSE_ADD_CASE(10)
        DENSE_ADD_CASE(11)
        DENSE_ADD_CASE(12)
        DENSE_ADD_CASE(13)
        DENSE_ADD_CASE(14)
#endif
    default:
        break;
    }
}

const dense_loops DENSE_TABLE = {
    .name = DENSE_NAME,
    .width = 2 * LANES,
    .rows = DENSE_ROWS,
    .multiply = dense_multiply,
    .pack = dense_pack,
    .add_up = dense_add_up,
};
