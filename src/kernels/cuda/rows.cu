/*
 * rows.cu - operators and losses that take each row by itself: src/backends/ref has the equations.
 * A few threads share a row; the sums that they make are added up in pairs.
 */
#include "kernels/cuda/rows.h"

#include <math.h>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/grid.h"

#define ROWS_LEAST (-INFINITY)

/* The row of a thread, of those that the block takes from `first` on. */
static inline uint32_t rows_row(const cuda_rows *arg, uint32_t first)
{
    return first + THREAD / arg->lanes;
}

/* Rows that the blocks take together. */
static inline uint32_t rows_step(const cuda_rows *arg)
{
    return BLOCKS * (THREADS / arg->lanes);
}

static inline uint32_t rows_begin(const cuda_rows *arg)
{
    return BLOCK * (THREADS / arg->lanes);
}

static inline float rows_scale(const cuda_rows *arg)
{
    return arg->phantom ? 0 : arg->values->grad_scale;
}

static inline float rows_x(const cuda_rows *arg, size_t at)
{
    return element_read(arg->x, at, arg->type);
}

static inline void rows_write(const cuda_rows *arg, size_t at, float value)
{
    element_write(arg->out, at, arg->type, value);
}

/* Of a whole block: of each row the maximum of x, and the sum of exp(x - maximum). */
INLINE void rows_exp(float *most, float *sum, const cuda_rows *arg, uint32_t first)
{
    PHASE {
        const uint32_t row = rows_row(arg, first), lane = THREAD % arg->lanes;

        most[THREAD] = ROWS_LEAST;
        for (uint32_t c = lane; row < arg->rows && c < arg->width; c += arg->lanes)
            most[THREAD] = fmaxf(most[THREAD], rows_x(arg, (size_t)row * arg->width + c));
    }
    block_max(most, arg->lanes);
    PHASE {
        const uint32_t row = rows_row(arg, first), lane = THREAD % arg->lanes;
        const float top = most[THREAD - lane];

        sum[THREAD] = 0;
        for (uint32_t c = lane; row < arg->rows && c < arg->width; c += arg->lanes)
            sum[THREAD] += expf(rows_x(arg, (size_t)row * arg->width + c) - top);
    }
    block_sum(sum, arg->lanes);
}

KERNEL(rows_log_softmax, cuda_rows)
{
    SHARED float most[CUDA_BLOCK], sum[CUDA_BLOCK];

    for (uint32_t first = rows_begin(&arg); first < arg.rows; first += rows_step(&arg)) {
        rows_exp(most, sum, &arg, first);
        PHASE {
            const uint32_t row = rows_row(&arg, first), lane = THREAD % arg.lanes;
            const float top = most[THREAD - lane], norm = logf(sum[THREAD - lane]);

            for (uint32_t c = lane; row < arg.rows && c < arg.width; c += arg.lanes) {
                const size_t at = (size_t)row * arg.width + c;

                rows_write(&arg, at, rows_x(&arg, at) - top - norm);
            }
        }
    }
}

KERNEL(rows_log_softmax_backward, cuda_rows)
{
    SHARED float sum[CUDA_BLOCK];

    for (uint32_t first = rows_begin(&arg); first < arg.rows; first += rows_step(&arg)) {
        PHASE {
            const uint32_t row = rows_row(&arg, first), lane = THREAD % arg.lanes;

            sum[THREAD] = 0;
            for (uint32_t c = lane; row < arg.rows && c < arg.width; c += arg.lanes)
                sum[THREAD] += rows_x(&arg, (size_t)row * arg.width + c);
        }
        block_sum(sum, arg.lanes);
        PHASE {
            const uint32_t row = rows_row(&arg, first), lane = THREAD % arg.lanes;
            const float all = sum[THREAD - lane];

            for (uint32_t c = lane; row < arg.rows && c < arg.width; c += arg.lanes) {
                const size_t at = (size_t)row * arg.width + c;

                rows_write(&arg, at,
                           rows_x(&arg, at) - expf(element_read(arg.y, at, arg.type)) * all);
            }
        }
    }
}

/* ---- losses of labels ---- */

/* sum_c q[c] (norm - x[c]), with all of x moved by its maximum. */
KERNEL(rows_cross_entropy, cuda_rows)
{
    SHARED float most[CUDA_BLOCK], sum[CUDA_BLOCK], all[CUDA_BLOCK];

    for (uint32_t first = rows_begin(&arg); first < arg.rows; first += rows_step(&arg)) {
        rows_exp(most, sum, &arg, first);
        PHASE {
            const uint32_t row = rows_row(&arg, first), lane = THREAD % arg.lanes;
            const float top = most[THREAD - lane];

            all[THREAD] = 0;
            for (uint32_t c = lane; row < arg.rows && c < arg.width && arg.smoothing > 0;
                 c += arg.lanes)
                all[THREAD] += rows_x(&arg, (size_t)row * arg.width + c) - top;
        }
        block_sum(all, arg.lanes);
        PHASE {
            const uint32_t row = rows_row(&arg, first);
            float *loss = (float *)arg.out + row, right;

            if (THREAD % arg.lanes > 0 || row >= arg.rows)
                continue;
            *loss = 0;
            if (arg.label[row] < 0)
                continue;
            right = rows_x(&arg, (size_t)row * arg.width + (uint32_t)arg.label[row]) - most[THREAD];
            *loss = logf(sum[THREAD]) - (1 - arg.smoothing) * right -
                    arg.smoothing / (float)arg.width * all[THREAD];
        }
    }
}

KERNEL(rows_cross_entropy_backward, cuda_rows)
{
    SHARED float most[CUDA_BLOCK], sum[CUDA_BLOCK];
    const float scale = rows_scale(&arg) / (float)arg.positions;
    const float rest = arg.smoothing / (float)arg.width;

    for (uint32_t first = rows_begin(&arg); first < arg.rows; first += rows_step(&arg)) {
        rows_exp(most, sum, &arg, first);
        PHASE {
            const uint32_t row = rows_row(&arg, first), lane = THREAD % arg.lanes;
            const float top = most[THREAD - lane], norm = logf(sum[THREAD - lane]);

            for (uint32_t c = lane; row < arg.rows && c < arg.width; c += arg.lanes) {
                const size_t at = (size_t)row * arg.width + c;
                const bool right = c == (uint32_t)arg.label[row];
                const float q = (right ? 1 - arg.smoothing : 0) + rest;

                rows_write(&arg, at,
                           arg.label[row] < 0 ? 0
                                              : scale * (expf(rows_x(&arg, at) - top - norm) - q));
            }
        }
    }
}

/* Of each row of x. */
KERNEL(rows_mean, cuda_rows)
{
    SHARED float sum[CUDA_BLOCK];

    for (uint32_t first = rows_begin(&arg); first < arg.rows; first += rows_step(&arg)) {
        PHASE {
            const uint32_t row = rows_row(&arg, first);

            sum[THREAD] = 0;
            for (uint32_t c = THREAD % arg.lanes; row < arg.rows && c < arg.width; c += arg.lanes)
                sum[THREAD] += rows_x(&arg, (size_t)row * arg.width + c);
        }
        block_sum(sum, arg.lanes);
        PHASE
            if (THREAD % arg.lanes == 0 && rows_row(&arg, first) < arg.rows)
                ((float *)arg.out)[rows_row(&arg, first)] = sum[THREAD] / (float)arg.width;
    }
}

KERNEL(rows_nll, cuda_rows)
{
    EACH (row, arg.rows)
        ((float *)arg.out)[row] = -rows_x(&arg, row * arg.width + (uint32_t)arg.label[row]);
}

KERNEL(rows_nll_backward, cuda_rows)
{
    const float scale = rows_scale(&arg);

    EACH (i, (size_t)arg.rows * arg.width) {
        const uint32_t row = (uint32_t)i / arg.width, c = (uint32_t)i % arg.width;

        rows_write(&arg, i, c == (uint32_t)arg.label[row] ? -scale : 0);
    }
}

/* ---- losses of values ---- */

static inline float rows_term(cuda_term term, float x, float t)
{
    if (term == CUDA_SQUARE)
        return (x - t) * (x - t);
    if (term == CUDA_ABSOLUTE)
        return fabsf(x - t);
    return (x < 0 ? 0 : x) - t * x + log1pf(expf(-fabsf(x)));
}

/* A NaN stays one. */
static inline float rows_slope(cuda_term term, float x, float t)
{
    if (term == CUDA_SQUARE)
        return 2 * (x - t);
    if (term == CUDA_ABSOLUTE)
        return x > t ? 1 : x < t ? -1 : x - t;
    return 1 / (1 + expf(-x)) - t;
}

KERNEL(rows_values, cuda_rows)
{
    SHARED float sum[CUDA_BLOCK];

    for (uint32_t first = rows_begin(&arg); first < arg.rows; first += rows_step(&arg)) {
        PHASE {
            const uint32_t row = rows_row(&arg, first), lane = THREAD % arg.lanes;

            sum[THREAD] = 0;
            for (uint32_t c = lane; row < arg.rows && c < arg.width; c += arg.lanes) {
                const size_t at = (size_t)row * arg.width + c;

                sum[THREAD] += rows_term(arg.term, rows_x(&arg, at), ((const float *)arg.y)[at]);
            }
        }
        block_sum(sum, arg.lanes);
        PHASE
            if (THREAD % arg.lanes == 0 && rows_row(&arg, first) < arg.rows)
                ((float *)arg.out)[rows_row(&arg, first)] = sum[THREAD] / (float)arg.width;
    }
}

KERNEL(rows_values_backward, cuda_rows)
{
    const float scale = rows_scale(&arg) / (float)arg.width;

    EACH (i, (size_t)arg.rows * arg.width)
        rows_write(&arg, i,
                   scale * rows_slope(arg.term, rows_x(&arg, i), ((const float *)arg.y)[i]));
}
