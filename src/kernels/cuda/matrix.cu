/*
 * matrix.cu - a large matrix and a few vectors (ext/vector.h), with the bits of the host's tables.
 * Compiled without fused multiply-adds.
 */
#include <math.h>

#include "kernels/cuda/grid.h"
#include "kernels/cuda/vector.h"

#define LANES CUDA_LANES /* of a sum, which are then added up in pairs */
#define DOTS  (CUDA_BLOCK / LANES)
/* A vector in the span of the others leaves nothing but rounding errors. */
#define SPANNED 1e-6

KERNEL(matrix_times, cuda_matrix)
{
    SHARED float lane[CUDA_BLOCK];
    const size_t dots = arg.rows * arg.rank, whole = arg.cols / LANES * LANES;

    for (size_t first = (size_t)BLOCK * DOTS; first < dots; first += (size_t)BLOCKS * DOTS) {
        PHASE {
            const size_t dot = first + THREAD / LANES, row = dot % arg.rows, k = dot / arg.rows;
            float sum = 0;

            for (size_t i = THREAD % LANES; dot < dots && i < whole; i += LANES)
                sum += arg.m[row * arg.cols + i] * arg.q[k * arg.cols + i];
            lane[THREAD] = sum;
        }
        PHASE {
            const size_t dot = first + THREAD / LANES, row = dot % arg.rows, k = dot / arg.rows;

            if (THREAD % LANES > 0 || dot >= dots)
                continue;
            for (uint32_t half = LANES / 2; half > 0; half /= 2)
                for (uint32_t l = 0; l < half; l++)
                    lane[THREAD + l] += lane[THREAD + l + half];
            for (size_t i = whole; i < arg.cols; i++)
                lane[THREAD] += arg.m[row * arg.cols + i] * arg.q[k * arg.cols + i];
            arg.out[dot] = lane[THREAD];
        }
    }
}

KERNEL(matrix_transposed_times, cuda_matrix)
{
    EACH (e, arg.rank * arg.cols) {
        const size_t k = e / arg.cols, j = e % arg.cols;
        float sum = 0;

        for (size_t i = 0; i < arg.rows; i++)
            sum += arg.p[k * arg.rows + i] * arg.m[i * arg.cols + j];
        arg.out[e] = sum;
    }
}

KERNEL(matrix_add_outer, cuda_matrix)
{
    EACH (e, arg.rows * arg.cols) {
        const size_t i = e / arg.cols, j = e % arg.cols;
        float sum = arg.out[e];

        for (size_t k = 0; k < arg.rank; k++)
            sum += arg.sign * arg.p[k * arg.rows + i] * arg.q[k * arg.cols + j];
        arg.out[e] = sum;
    }
}

/* Of a whole block; `tile` (CUDA_BLOCK) and `total` are SHARED. The sum has the order of i. */
static inline double matrix_dot(double *tile, double *total, const float *a, const float *b,
                                size_t n)
{
    double result;

    PHASE
        if (THREAD == 0)
            *total = 0;
    for (size_t first = 0; first < n; first += THREADS) {
        PHASE
            if (first + THREAD < n)
                tile[THREAD] = (double)a[first + THREAD] * (double)b[first + THREAD];
        PHASE
            if (THREAD == 0)
                for (size_t t = 0; t < THREADS && first + t < n; t++)
                    *total += tile[t];
    }
    result = *total;
    SYNC();
    return result;
}

/* One block. Gram-Schmidt with a second pass, as tensor/matrix.c. */
KERNEL(matrix_orthonormalize, cuda_matrix)
{
    SHARED double tile[CUDA_BLOCK], total;
    const size_t n = arg.rows;
    bool finite = true;

    for (size_t k = 0; k < arg.rank; k++) {
        float *v = arg.out + k * n;
        const double before = sqrt(matrix_dot(tile, &total, v, v, n));
        double after;

        for (size_t other = 0; other < 2 * k; other++) {
            const float *o = arg.out + other % k * n;
            const float scale = -(float)matrix_dot(tile, &total, v, o, n);

            PHASE
                for (size_t i = THREAD; i < n; i += THREADS)
                    v[i] += scale * o[i];
        }
        after = sqrt(matrix_dot(tile, &total, v, v, n));
        finite = finite && isfinite(before) && isfinite(after);
        if (!(after > before * SPANNED))
            after = INFINITY;
        PHASE
            for (size_t i = THREAD; i < n; i += THREADS)
                v[i] = finite ? (float)((double)v[i] / after) : NAN;
    }
    PHASE
        for (size_t i = THREAD; i < arg.rank * n && !finite; i += THREADS)
            arg.out[i] = NAN;
}
