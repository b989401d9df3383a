/*
 * gemm_half.h - products of matrices of BF16, added up in floats, by tiles (kernels/tiles.h), by
 * products of pairs or by those of floats: the loops of linear layers and attention.
 *
 * Both factors are packed in panels of 32 lines, a line being a row of a or a column of b. Of a
 * panel, 32 elements of each line follow each other, then the next 32: a step. Of a they are
 * (32 lines, 32), of b (2, 16 pairs of elements, 16 lines, 2). Lines and elements that there are
 * not are zeros.
 *
 * Loops that multiply floats have panels of floats, which are numbers of BF16: of a (32 lines, 32),
 * of b (2, 32 elements, 16 lines).
 */
#ifndef CO_KERNELS_GEMM_HALF_H
#define CO_KERNELS_GEMM_HALF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GEMM_HALF_PANEL 32                                 /* lines */
#define GEMM_HALF_STEP  32                                 /* elements */
#define GEMM_HALF_CELLS (GEMM_HALF_PANEL * GEMM_HALF_STEP) /* of a panel's step */

/* Lines of a matrix of `type`, floats or BF16, `step` elements from a row of it to the next. */
typedef struct gemm_half_from {
    const void *at;
    int64_t step;
    int64_t lines, elements; /* of each line */
} gemm_half_from;

/* A panel of a times all panels of b: of each sum the elements of `steps` steps. */
typedef struct gemm_half_job {
    const void *a, *b;
    int64_t b_panel; /* numbers from a panel of b to the next */
    int64_t steps;
    int64_t rows, columns; /* of the result: at most a panel; all panels of b */
    bool first, last;      /* of each sum's parts */
    const float *bias;     /* of each column, zeros up to whole panels; NULL: none */
    float *sums; /* (panels of b, 32, 32): between the first part and the last; NULL: there is
              one part */
    void *y;     /* written with the last part; `step` elements from row to row */
    int64_t step;
    bool half; /* y is rounded to BF16; else floats, */
    bool add;  /* added to what is there */
} gemm_half_job;

typedef struct gemm_half_loops {
    const char *name;
    size_t cell; /* size of a number of a panel */
    /* What is best where sums are added to memory, as gradients of weights are: KiB of panels of b
       that stay in the second-level cache, and panels of a whose columns, neighbours in memory, are
       packed at once. */
    int block, panels;
    /* A panel of a from rows of BF16, and from columns, which are added up to sum (32), if that is
       not NULL. */
    void (*rows)(void *to, const gemm_half_from *from);
    void (*columns)(void *to, const gemm_half_from *from, float *sum);
    /* A panel of b from rows and from columns, of floats and of BF16. */
    void (*float_rows)(void *to, const gemm_half_from *from);
    void (*float_columns)(void *to, const gemm_half_from *from);
    void (*half_rows)(void *to, const gemm_half_from *from);
    void (*half_columns)(void *to, const gemm_half_from *from);
    void (*multiply)(const gemm_half_job *job);
} gemm_half_loops;

#ifdef CO_KERNELS_X86
extern const gemm_half_loops gemm_half_loops_amx, gemm_half_loops_bf16, gemm_half_loops_widened;
#endif

#endif
