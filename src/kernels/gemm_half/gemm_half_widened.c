/*
 * gemm_half_widened.c - the loops of gemm_half.h with products of floats: for CPUs that multiply
 * these faster than pairs of BF16.
 */
#include "kernels/gemm_half/gemm_half_common.h"
#include "kernels/simd_tile.h"

/* Rows of a that meet both vectors of a panel of b: a sum each in a register. */
#define GEMM_HALF_ROWS 12

/* --- packing --- */

/* 16 numbers, or the first n of them, from element `at` on. */
typedef vec (*widened_take)(const void *from, int64_t at, int64_t n, const bool whole);

SIMD_INLINE vec widened_halves(const void *from, int64_t at, int64_t n, const bool whole)
{
    return half16_widen(gemm_half_some((const uint16_t *)from + at, n, whole));
}

SIMD_INLINE vec widened_floats(const void *from, int64_t at, int64_t n, const bool whole)
{
    const vec value = gemm_half_floats((const float *)from + at, n, whole);

    return half16_widen(half16_round(value));
}

/* A square of a step: 16 lines, from line i, and 16 elements, from element k. Vectors are lines, or
   elements where lines are `columns`. */
SIMD_INLINE void widened_load(vec *v, const gemm_half_from *from, int64_t i, int64_t k,
                              widened_take take, const bool columns)
{
    const int64_t first = columns ? k : i, at = columns ? i : k;
    const int64_t vectors = (columns ? from->elements : from->lines) - first;
    const int64_t n = (columns ? from->lines : from->elements) - at;
    const bool whole = vectors >= LANES && n >= LANES;

    for (int64_t l = 0; l < LANES; l++) {
        const int64_t row = (first + l) * from->step + at;

        v[l] = whole ? take(from->at, row, LANES, true)
                     : take(from->at, row, l < vectors ? n : 0, false);
    }
}

SIMD_INLINE void widened_store(float *to, const vec *v, int64_t step)
{
    for (int64_t l = 0; l < LANES; l++)
        simd_store(to + l * step, v[l]);
}

/* A panel of a, whose vectors are of elements. */
SIMD_INLINE void widened_pack_a(float *to, const gemm_half_from *from, float *sum,
                                const bool columns)
{
    vec v[LANES], all[2] = {{0}};

    for (int64_t k = 0; k < from->elements; k += GEMM_HALF_STEP, to += GEMM_HALF_CELLS)
        for (int64_t i = 0; i < GEMM_HALF_PANEL; i += LANES)
            for (int64_t e = 0; e < GEMM_HALF_STEP; e += LANES) {
                widened_load(v, from, i, k + e, widened_halves, columns);
                for (int l = 0; columns && l < LANES; l++)
                    all[i / LANES] += v[l];
                if (columns)
                    simd_transpose(v);
                widened_store(to + i * GEMM_HALF_STEP + e, v, GEMM_HALF_STEP);
            }
    for (int64_t i = 0; sum && i < GEMM_HALF_PANEL; i += LANES)
        simd_store_any(sum + i, simd_load_any(sum + i) + all[i / LANES]);
}

static void widened_rows(void *to, const gemm_half_from *from)
{
    widened_pack_a(to, from, NULL, false);
}

static void widened_columns(void *to, const gemm_half_from *from, float *sum)
{
    widened_pack_a(to, from, sum, true);
}

/* A panel of b, whose vectors are of lines. */
SIMD_INLINE void widened_pack_b(float *to, const gemm_half_from *from, widened_take take,
                                const bool columns)
{
    vec v[LANES];

    for (int64_t k = 0; k < from->elements; k += GEMM_HALF_STEP)
        for (int64_t i = 0; i < GEMM_HALF_PANEL; i += LANES)
            for (int64_t e = 0; e < GEMM_HALF_STEP; e += LANES, to += LANES * LANES) {
                widened_load(v, from, i, k + e, take, columns);
                if (!columns)
                    simd_transpose(v);
                widened_store(to, v, LANES);
            }
}

static void widened_float_rows(void *to, const gemm_half_from *from)
{
    widened_pack_b(to, from, widened_floats, false);
}

static void widened_float_columns(void *to, const gemm_half_from *from)
{
    widened_pack_b(to, from, widened_floats, true);
}

static void widened_half_rows(void *to, const gemm_half_from *from)
{
    widened_pack_b(to, from, widened_halves, false);
}

static void widened_half_columns(void *to, const gemm_half_from *from)
{
    widened_pack_b(to, from, widened_halves, true);
}

/* --- products --- */

/* The sums of `rows` rows, which start from `from`, bias, or 0. */
SIMD_INLINE void widened_sum_up(float *to, const float *from, const float *bias, const float *a,
                                const float *b, int64_t steps, const int rows)
{
    simd_tile_row sum[GEMM_HALF_ROWS];

    SIMD_UNROLL(16)
    for (int r = 0; r < rows; r++)
        SIMD_UNROLL(2)
    for (int h = 0; h < 2; h++)
        sum[r][h] = from   ? simd_load(from + r * GEMM_HALF_PANEL + h * LANES)
                    : bias ? simd_load_any(bias + h * LANES)
                           : (vec){0};
    for (int64_t s = 0; s < steps; s++, a += GEMM_HALF_CELLS, b += GEMM_HALF_CELLS)
        for (int k = 0; k < GEMM_HALF_STEP; k += 4)
            SIMD_UNROLL(4)
    for (int i = k; i < k + 4; i++)
        simd_tile_add(sum, a + i, GEMM_HALF_STEP, b + i * LANES, GEMM_HALF_STEP * LANES, rows, 2);
    SIMD_UNROLL(16)
    for (int r = 0; r < rows; r++)
        SIMD_UNROLL(2)
    for (int h = 0; h < 2; h++)
        simd_store(to + r * GEMM_HALF_PANEL + h * LANES, sum[r][h]);
}

/* Rows `first` to `first` + `rows` of a, which stay in the first-level cache, times all panels of
 * b. */
SIMD_INLINE void widened_multiply_rows(const gemm_half_job *job, int64_t first, const int rows)
{
    _Alignas(64) float done[GEMM_HALF_ROWS * GEMM_HALF_PANEL];
    const float *a = (const float *)job->a + first * GEMM_HALF_STEP, *b = job->b;
    const size_t cell = job->half ? sizeof(uint16_t) : sizeof(float);
    gemm_half_job some = *job;

    some.rows = gemm_half_least(job->rows - first, rows);
    some.y = (char *)job->y + (size_t)(first * job->step) * cell;
    for (int64_t i = 0; i * GEMM_HALF_PANEL < job->columns; i++, b += job->b_panel) {
        float *sums = job->sums ? job->sums + i * GEMM_HALF_CELLS + first * GEMM_HALF_PANEL : NULL;

        widened_sum_up(job->last ? done : sums, job->first ? NULL : sums,
                       job->bias ? job->bias + i * GEMM_HALF_PANEL : NULL, a, b, job->steps, rows);
        if (job->last)
            gemm_half_put(&some, done, i * GEMM_HALF_PANEL, 0, some.rows);
    }
}

static void widened_multiply(const gemm_half_job *job)
{
    int64_t r = 0;

    for (; r + GEMM_HALF_ROWS < GEMM_HALF_PANEL && r < job->rows; r += GEMM_HALF_ROWS)
        widened_multiply_rows(job, r, GEMM_HALF_ROWS);
    if (r < job->rows)
        widened_multiply_rows(job, r, GEMM_HALF_PANEL % GEMM_HALF_ROWS);
}

const gemm_half_loops gemm_half_loops_widened = {
    .name = "bf16 in floats",
    .cell = sizeof(float),
    .block = 1280,
    .panels = 4,
    .rows = widened_rows,
    .columns = widened_columns,
    .float_rows = widened_float_rows,
    .float_columns = widened_float_columns,
    .half_rows = widened_half_rows,
    .half_columns = widened_half_columns,
    .multiply = widened_multiply,
};
