/* gemm.h - what the kernels of gemm.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_GEMM_H
#define CO_KERNELS_CUDA_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block makes a tile of CUDA_TILE x CUDA_TILE elements of the product. */
#define CUDA_TILE 64

/* One of the directions of a convolution. */
typedef struct cuda_axis {
    int32_t in, out, kernel, stride, padding, dilation;
} cuda_axis;

/*
 * out (m, n) = sum over k of A (m, k) B (k, n), the k of each of `splits` parts by a block of its
 * own; for each of `groups`. A and B are matrices by strides, or gathered from the tensors of a
 * convolution: c and o are channels of one group.
 */
typedef struct cuda_gemm {
    float *out; /* of the product; with several splits (splits, groups, m, n) */
    const float *a, *b;
    const float *bias; /* by column or by output channel; NULL: none */
    uint32_t m, n, k;
    uint32_t groups, splits, each;       /* each: k of a part, a multiple of the depth of a tile */
    uint32_t a_row, a_col, b_row, b_col; /* strides in elements, of matrices */
    uint32_t c, o;
    cuda_axis h, w;
    bool accumulate; /* add to what is there */
} cuda_gemm;

/* out (n) = the sum over the parts (parts, n), in order. */
typedef struct cuda_parts {
    float *out;
    const float *part;
    size_t n;
    uint32_t parts;
    bool accumulate;
} cuda_parts;

#endif
