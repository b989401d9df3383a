/*
 * matrix.c - see matrix.h.
 *
 * The matrix is read once, or read and written once: these products are limited by memory
 * bandwidth.
 */
#include "tensor/matrix.h"

#include <math.h>
#include <string.h>

#define MATRIX_TERMS CO_VECTOR_TERMS
/* A vector in the span of the others leaves nothing but rounding errors. */
#define MATRIX_SPANNED 1e-6

static int matrix_terms(size_t begin, size_t end)
{
    return end - begin < MATRIX_TERMS ? (int)(end - begin) : MATRIX_TERMS;
}

void co_matrix_times(const co_vector_inner *inner, float *p, const float *m, const float *q,
                     const co_vector_matrix *shape)
{
    for (size_t k = 0; k < shape->rank; k += MATRIX_TERMS) {
        const int terms = matrix_terms(k, shape->rank);
        const float *column[MATRIX_TERMS];
        float sum[MATRIX_TERMS];

        for (int t = 0; t < terms; t++)
            column[t] = q + (k + (size_t)t) * shape->cols;
        for (size_t i = 0; i < shape->rows; i++) {
            inner->dot(sum, m + i * shape->cols, column, terms, shape->cols);
            for (int t = 0; t < terms; t++)
                p[(k + (size_t)t) * shape->rows + i] = sum[t];
        }
    }
}

void co_matrix_transposed_times(const co_vector_inner *inner, float *q, const float *m,
                                const float *p, const co_vector_matrix *shape)
{
    memset(q, 0, shape->rank * shape->cols * sizeof(*q));
    for (size_t i = 0; i < shape->rows; i += MATRIX_TERMS) {
        const int terms = matrix_terms(i, shape->rows);
        const float *row[MATRIX_TERMS];

        for (int t = 0; t < terms; t++)
            row[t] = m + (i + (size_t)t) * shape->cols;
        for (size_t k = 0; k < shape->rank; k++)
            inner->add_scaled(q + k * shape->cols, row, p + k * shape->rows + i, terms,
                              shape->cols);
    }
}

void co_matrix_add_outer(const co_vector_inner *inner, float *m, float sign, const float *p,
                         const float *q, const co_vector_matrix *shape)
{
    for (size_t i = 0; i < shape->rows; i++)
        for (size_t k = 0; k < shape->rank; k += MATRIX_TERMS) {
            const int terms = matrix_terms(k, shape->rank);
            const float *column[MATRIX_TERMS];
            float scale[MATRIX_TERMS];

            for (int t = 0; t < terms; t++) {
                column[t] = q + (k + (size_t)t) * shape->cols;
                scale[t] = sign * p[(k + (size_t)t) * shape->rows + i];
            }
            inner->add_scaled(m + i * shape->cols, column, scale, terms, shape->cols);
        }
}

static double matrix_dot_exact(const float *a, const float *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Gram-Schmidt with a second pass, which corrects what the first loses to cancellation. */
static void matrix_make_orthogonal(const co_vector_inner *inner, float *v, const float *p,
                                   size_t before, size_t n)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < before; k++) {
            const float *other = p + k * n;
            const float scale = -(float)matrix_dot_exact(v, other, n);

            inner->add_scaled(v, &other, &scale, 1, n);
        }
}

void co_matrix_orthonormalize(const co_vector_inner *inner, float *p, const co_vector_matrix *shape)
{
    const size_t n = shape->rows;
    bool finite = true;

    for (size_t k = 0; k < shape->rank; k++) {
        float *v = p + k * n;
        const double before = sqrt(matrix_dot_exact(v, v, n));
        double after;

        matrix_make_orthogonal(inner, v, p, k, n);
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
