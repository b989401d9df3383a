/*
 * gemm_half_tiles.h - the loops of gemm_half.h with products by tiles. Included by a file that
 * defines GEMM_HALF_TABLE and GEMM_HALF_NAME, and TILES_PLAIN for plain C.
 */
#define GEMM_HALF_BLOCK  768 /* KiB: see gemm_half_loops */
#define GEMM_HALF_PANELS 2

#include "kernels/gemm_half/gemm_half_impl.h"
#include "kernels/tiles.h"

#define GEMM_HALF_STRIDE (GEMM_HALF_PANEL * (int)sizeof(float)) /* bytes of a row of sums */

/* What the sums (32, 32) start from: `sums`, bias, or 0. */
SIMD_INLINE void gemm_half_begin(tiles *t, const float *sums, const float *bias)
{
    if (sums) {
        TILES_LOAD(t, 0, sums, GEMM_HALF_STRIDE);
        TILES_LOAD(t, 1, sums + TILES_FLOATS, GEMM_HALF_STRIDE);
        TILES_LOAD(t, 2, sums + TILES_ROWS * GEMM_HALF_PANEL, GEMM_HALF_STRIDE);
        TILES_LOAD(t, 3, sums + TILES_ROWS * GEMM_HALF_PANEL + TILES_FLOATS, GEMM_HALF_STRIDE);
    } else {
        tiles_start(t, bias);
    }
}

/* Sums of a panel that are still to be put in place, which is done row by row between the products
   of the next one. */
typedef struct gemm_half_late {
    const float *sums;
    int64_t column, row, rows; /* `row`: the next */
} gemm_half_late;

SIMD_INLINE void gemm_half_put_late(const gemm_half_job *job, gemm_half_late *late, int64_t rows)
{
    const int64_t end = gemm_half_least(late->row + rows, late->rows);

    if (late->row < end)
        gemm_half_put(job, late->sums, late->column, late->row, end);
    late->row = end;
}

/* Bytes of a panel of a that stay in the first-level cache from one panel of b to the next. */
#define GEMM_HALF_STAYS (5 << 13)

/* A tile of a and both of b after the other, each loaded right before its first product. */
SIMD_INLINE void gemm_half_step(tiles *t, const uint16_t *a, const uint16_t *b, const bool stays)
{
    TILES_PASS(t, 6, b, TILES_BYTES);
    if (stays)
        TILES_LOAD(t, 4, a, TILES_BYTES);
    else
        TILES_PASS(t, 4, a, TILES_BYTES);
    TILES_MULTIPLY(t, 0, 4, 6);
    if (stays)
        TILES_LOAD(t, 5, a + GEMM_HALF_CELLS / 2, TILES_BYTES);
    else
        TILES_PASS(t, 5, a + GEMM_HALF_CELLS / 2, TILES_BYTES);
    TILES_MULTIPLY(t, 2, 5, 6);
    TILES_PASS(t, 7, b + GEMM_HALF_CELLS / 2, TILES_BYTES);
    TILES_MULTIPLY(t, 1, 4, 7);
    TILES_MULTIPLY(t, 3, 5, 7);
}

static void gemm_half_sum_up(tiles *t, float *to, const gemm_half_job *job, const uint16_t *b,
                             gemm_half_late *late)
{
    const uint16_t *a = job->a;
    const int64_t each = (late->rows + job->steps - 1) / job->steps;
    const bool stays = job->steps * GEMM_HALF_CELLS * (int64_t)sizeof(*a) <= GEMM_HALF_STAYS;

    for (int64_t s = 0; s < job->steps; s++, a += GEMM_HALF_CELLS, b += GEMM_HALF_CELLS) {
        if (stays)
            gemm_half_step(t, a, b, true);
        else
            gemm_half_step(t, a, b, false);
        gemm_half_put_late(job, late, each);
    }
    TILES_STORE(t, 0, to, GEMM_HALF_STRIDE);
    TILES_STORE(t, 1, to + TILES_FLOATS, GEMM_HALF_STRIDE);
    TILES_STORE(t, 2, to + TILES_ROWS * GEMM_HALF_PANEL, GEMM_HALF_STRIDE);
    TILES_STORE(t, 3, to + TILES_ROWS * GEMM_HALF_PANEL + TILES_FLOATS, GEMM_HALF_STRIDE);
}

static void gemm_half_multiply(const gemm_half_job *job)
{
    _Alignas(TILES_BYTES) float done[2][GEMM_HALF_CELLS];
    const uint16_t *b = job->b;
    gemm_half_late late = {0};
    tiles t;

    tiles_begin(&t, TILES_ROWS);
    for (int64_t i = 0; i * GEMM_HALF_PANEL < job->columns; i++, b += job->b_panel) {
        float *sums = job->sums ? job->sums + i * GEMM_HALF_CELLS : NULL;
        float *to = job->last ? done[i % 2] : sums;

        gemm_half_begin(&t, job->first ? NULL : sums,
                        job->bias ? job->bias + i * GEMM_HALF_PANEL : NULL);
        gemm_half_sum_up(&t, to, job, b, &late);
        if (job->last)
            late = (gemm_half_late){to, i * GEMM_HALF_PANEL, 0, job->rows};
    }
    gemm_half_put_late(job, &late, late.rows);
    tiles_end(&t);
}
