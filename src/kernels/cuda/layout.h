/* layout.h - what the kernels of layout.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_LAYOUT_H
#define CO_KERNELS_CUDA_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/number.h"

/* Rows and columns of a tile, which a block transposes. */
#define CUDA_TRANSPOSE_TILE 32

/* (n, rows, columns) to (n, columns, rows). */
typedef struct cuda_transpose {
    void *out;
    const void *in;
    uint32_t n, rows, columns;
    cuda_number from, to;
    bool accumulate; /* added to `out`, which is in fp32 */
} cuda_transpose;

/* x (rows, columns) + bias (columns). */
typedef struct cuda_add_row {
    void *out; /* may be x, of the same type */
    const void *x;
    const float *bias;
    size_t rows;
    uint32_t columns;
    uint32_t together; /* columns of a thread: 1 or CUDA_TOGETHER */
    cuda_number from, to;
    bool rounded; /* the bias to the type of `out` first */
} cuda_add_row;

#endif
