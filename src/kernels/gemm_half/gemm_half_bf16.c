/* gemm_half_bf16.c - the loops of gemm_half.h with products by AVX-512 with BF16. */
#define GEMM_HALF_TABLE  gemm_half_loops_bf16
#define GEMM_HALF_NAME   "bf16"
#define GEMM_HALF_BLOCK  1280
#define GEMM_HALF_PANELS 4

#include "kernels/gemm_half/gemm_half_impl.h"

/* Rows of a that meet both vectors of a panel of b: a sum each in a register. */
#define GEMM_HALF_ROWS 8

SIMD_INLINE vec gemm_half_load(const uint16_t *pairs)
{
    return simd_load((const float *)(const void *)pairs);
}

/* The sums of GEMM_HALF_ROWS rows, which start from `from`, bias, or 0. */
SIMD_INLINE void gemm_half_sum_up(float *to, const float *from, const float *bias,
                                  const uint16_t *a, const uint16_t *b, int64_t steps)
{
    vec sum[GEMM_HALF_ROWS][2];

    SIMD_UNROLL(16)
    for (int r = 0; r < GEMM_HALF_ROWS; r++)
        SIMD_UNROLL(2)
    for (int h = 0; h < 2; h++)
        sum[r][h] = from   ? simd_load(from + r * GEMM_HALF_PANEL + h * LANES)
                    : bias ? simd_load_any(bias + h * LANES)
                           : (vec){0};
    for (int64_t s = 0; s < steps; s++, a += GEMM_HALF_CELLS, b += GEMM_HALF_CELLS)
        for (int p = 0; p < GEMM_HALF_STEP / 2; p++) {
            const uint16_t *pairs = b + 2 * p * LANES;
            const vec first = gemm_half_load(pairs);
            const vec second = gemm_half_load(pairs + GEMM_HALF_CELLS / 2);

            SIMD_UNROLL(16) for (int r = 0; r < GEMM_HALF_ROWS; r++)
            {
                const vec pair =
                    half16_spread((const float *)(const void *)(a + r * GEMM_HALF_STEP + 2 * p));

                sum[r][0] = half16_dot(sum[r][0], pair, first);
                sum[r][1] = half16_dot(sum[r][1], pair, second);
            }
        }
    SIMD_UNROLL(16)
    for (int r = 0; r < GEMM_HALF_ROWS; r++)
        SIMD_UNROLL(2)
    for (int h = 0; h < 2; h++)
        simd_store(to + r * GEMM_HALF_PANEL + h * LANES, sum[r][h]);
}

static void gemm_half_multiply(const gemm_half_job *job)
{
    _Alignas(64) float done[GEMM_HALF_CELLS];
    const uint16_t *a = job->a, *b = job->b;

    for (int64_t i = 0; i * GEMM_HALF_PANEL < job->columns; i++, b += job->b_panel) {
        float *sums = job->sums ? job->sums + i * GEMM_HALF_CELLS : NULL;
        float *to = job->last ? done : sums;
        const float *from = job->first ? NULL : sums;

        for (int64_t r = 0; r < job->rows; r += GEMM_HALF_ROWS)
            gemm_half_sum_up(to + r * GEMM_HALF_PANEL, from ? from + r * GEMM_HALF_PANEL : NULL,
                             job->bias ? job->bias + i * GEMM_HALF_PANEL : NULL,
                             a + r * GEMM_HALF_STEP, b, job->steps);
        if (job->last)
            gemm_half_put(job, done, i * GEMM_HALF_PANEL, 0, job->rows);
    }
}
