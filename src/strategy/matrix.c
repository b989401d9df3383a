/*
 * matrix.c - see matrix.h. The matrix is read once, or read and written once: these products wait
 * for memory.
 */
#include "strategy/matrix.h"

#include <math.h>
#include <string.h>

#define MATRIX_LANES 16
/* A vector that the others span is what rounding leaves of it. */
#define MATRIX_SPANNED 1e-6

/* Vector code at any level of optimisation. */
#if defined(__GNUC__) && !defined(__clang__)
#define MATRIX_LOOP __attribute__((optimize("O3")))
#else
#define MATRIX_LOOP
#endif

/* In lanes that are added up in pairs. */
MATRIX_LOOP static float matrix_dot(const float *a, const float *b, size_t n)
{
    float lane[MATRIX_LANES] = {0}, rest = 0;
    size_t i = 0;

    for (; i + MATRIX_LANES <= n; i += MATRIX_LANES)
        for (size_t l = 0; l < MATRIX_LANES; l++)
            lane[l] += a[i + l] * b[i + l];
    for (; i < n; i++)
        rest += a[i] * b[i];
    for (size_t half = MATRIX_LANES / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0] + rest;
}

MATRIX_LOOP static void matrix_add_scaled(float *y, const float *x, float a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

void co_matrix_times(float *p, const float *m, const float *q, const co_matrix_shape *shape)
{
    for (size_t i = 0; i < shape->rows; i++)
        for (size_t k = 0; k < shape->rank; k++)
            p[k * shape->rows + i] =
                matrix_dot(m + i * shape->cols, q + k * shape->cols, shape->cols);
}

void co_matrix_transposed_times(float *q, const float *m, const float *p,
                                const co_matrix_shape *shape)
{
    memset(q, 0, shape->rank * shape->cols * sizeof(*q));
    for (size_t i = 0; i < shape->rows; i++)
        for (size_t k = 0; k < shape->rank; k++)
            matrix_add_scaled(q + k * shape->cols, m + i * shape->cols, p[k * shape->rows + i],
                              shape->cols);
}

void co_matrix_subtract_outer(float *m, const float *p, const float *q,
                              const co_matrix_shape *shape)
{
    for (size_t i = 0; i < shape->rows; i++)
        for (size_t k = 0; k < shape->rank; k++)
            matrix_add_scaled(m + i * shape->cols, q + k * shape->cols, -p[k * shape->rows + i],
                              shape->cols);
}

void co_matrix_outer(float *m, const float *p, const float *q, const co_matrix_shape *shape)
{
    for (size_t i = 0; i < shape->rows; i++) {
        float *row = m + i * shape->cols;

        memset(row, 0, shape->cols * sizeof(*row));
        for (size_t k = 0; k < shape->rank; k++)
            matrix_add_scaled(row, q + k * shape->cols, p[k * shape->rows + i], shape->cols);
    }
}

static double matrix_dot_exact(const float *a, const float *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Gram-Schmidt with a second pass, which makes up for what the first loses to cancellation. */
static void matrix_make_orthogonal(float *v, const float *p, size_t before, size_t n)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < before; k++)
            matrix_add_scaled(v, p + k * n, -(float)matrix_dot_exact(v, p + k * n, n), n);
}

void co_matrix_orthonormalize(float *p, const co_matrix_shape *shape)
{
    const size_t n = shape->rows;
    bool finite = true;

    for (size_t k = 0; k < shape->rank; k++) {
        float *v = p + k * n;
        const double before = sqrt(matrix_dot_exact(v, v, n));
        double after;

        matrix_make_orthogonal(v, p, k, n);
        after = sqrt(matrix_dot_exact(v, v, n));
        finite = finite && isfinite(before) && isfinite(after);
        if (!(after > before * MATRIX_SPANNED))
            after = INFINITY;
        for (size_t i = 0; i < n; i++)
            v[i] = finite ? (float)((double)v[i] / after) : NAN;
    }
    for (size_t i = 0; i < shape->rank * n && !finite; i++)
        p[i] = NAN;
}
