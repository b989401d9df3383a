/*
 * gemm_half_tiles.h - the loops of gemm_half.h with products by tiles. Included by a file that
 * defines GEMM_HALF_TABLE and GEMM_HALF_NAME, and TILES_PLAIN for plain C.
 */
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

SIMD_INLINE void gemm_half_sum_up(tiles *t, float *to, const uint16_t *a, const uint16_t *b,
                                  int64_t steps)
{
    for (int64_t s = 0; s < steps; s++, a += GEMM_HALF_CELLS, b += GEMM_HALF_CELLS) {
        TILES_LOAD(t, 4, a, TILES_BYTES);
        TILES_LOAD(t, 6, b, TILES_BYTES);
        TILES_LOAD(t, 5, a + GEMM_HALF_CELLS / 2, TILES_BYTES);
        TILES_LOAD(t, 7, b + GEMM_HALF_CELLS / 2, TILES_BYTES);
        TILES_MULTIPLY(t, 0, 4, 6);
        TILES_MULTIPLY(t, 2, 5, 6);
        TILES_MULTIPLY(t, 1, 4, 7);
        TILES_MULTIPLY(t, 3, 5, 7);
    }
    TILES_STORE(t, 0, to, GEMM_HALF_STRIDE);
    TILES_STORE(t, 1, to + TILES_FLOATS, GEMM_HALF_STRIDE);
    TILES_STORE(t, 2, to + TILES_ROWS * GEMM_HALF_PANEL, GEMM_HALF_STRIDE);
    TILES_STORE(t, 3, to + TILES_ROWS * GEMM_HALF_PANEL + TILES_FLOATS, GEMM_HALF_STRIDE);
}

/* A panel's results are put in place while the next one's products are made. */
static void gemm_half_multiply(const gemm_half_job *job)
{
    _Alignas(TILES_BYTES) float done[2][GEMM_HALF_CELLS];
    const uint16_t *b = job->b;
    int64_t i = 0;
    tiles t;

    tiles_begin(&t, TILES_ROWS);
    for (; i * GEMM_HALF_PANEL < job->columns; i++, b += job->b_panel) {
        float *sums = job->sums ? job->sums + i * GEMM_HALF_CELLS : NULL;

        gemm_half_begin(&t, job->first ? NULL : sums,
                        job->bias ? job->bias + i * GEMM_HALF_PANEL : NULL);
        gemm_half_sum_up(&t, job->last ? done[i % 2] : sums, job->a, b, job->steps);
        if (job->last && i > 0)
            gemm_half_put(job, done[(i - 1) % 2], (i - 1) * GEMM_HALF_PANEL);
    }
    if (job->last)
        gemm_half_put(job, done[(i - 1) % 2], (i - 1) * GEMM_HALF_PANEL);
    tiles_end(&t);
}
