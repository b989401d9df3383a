/*
 * gemm.h - products of matrices of floats that are read where they lie, in rows: the loops of
 * linear layers.
 *
 *   y = x w' + b     sums over neighbouring elements of rows of x and of w: nothing is turned
 *   dw = dy' x       and dx = dy w: sums of rows of x, of w, each times a number of dy
 */
#ifndef CO_KERNELS_GEMM_H
#define CO_KERNELS_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/levels.h"

/* A matrix of floats; `step` elements from one row to the next. */
typedef struct gemm_rows {
    float *at;
    int64_t n, step;
} gemm_rows;

/* Compiled once for each instruction set. A panel is (rows, width): `width` neighbouring columns of
   a matrix, zeros where it has none. */
typedef struct gemm_loops {
    const char *name;
    int width; /* columns of a panel: two vectors */
    int rows;  /* maximum number of rows for add_up */
    /* y[n][o] = bias[o] + sum over k of x[n][k] w[o][k], or += that without bias, for all rows of x
       and w. bias may be NULL. */
    void (*multiply)(const gemm_rows *y, const gemm_rows *x, const gemm_rows *w, const float *bias,
                     int64_t k, bool add);
    /* Copy `columns` columns, beginning at `from`, to (rows, width), at most that of a panel, with
       zeros beside them. What follows the last row is overwritten as far as a panel is wider. */
    void (*pack)(float *to, int64_t width, const gemm_rows *from, int64_t columns);
    /* The same of `columns` rows, of length k, to (k, width). */
    void (*turn)(float *to, int64_t width, const gemm_rows *from, int64_t k);
    /* to[i][j] = sum over l of number[l][i] panel[l][j], or +=; number (l, rows of `to`) */
    void (*add_up)(const gemm_rows *to, int64_t columns, const float *number, const float *panel,
                   int64_t l, bool add);
    /* sum[i] += the sum over l of number[l][i], for n numbers of each; at most `rows`. */
    void (*sum)(float *sum, int64_t n, const float *number, int64_t l);
} gemm_loops;

KERNELS_DECLARE(gemm_loops, gemm_loops);

#endif
