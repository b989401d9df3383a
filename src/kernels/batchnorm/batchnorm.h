/*
 * batchnorm.h - batch norm on images in blocks of channels, (N, C / lanes, H, W, lanes), a vector
 * or several of them, with the ReLU and the sum that follow it: its loops.
 */
#ifndef CO_KERNELS_BATCHNORM_H
#define CO_KERNELS_BATCHNORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/levels.h"

#define NORM_MAX_LANES 32

/* The epilogue of the norm. */
typedef enum norm_tail {
    NORM_PLAIN,
    NORM_RELU,
    NORM_ADD,
    NORM_ADD_RELU,
    NORM_RELU_ADD,
    NORM_TAILS
} norm_tail;

/* For each lane. */
typedef struct norm_line {
    _Alignas(64) float mean[NORM_MAX_LANES];
    float scale[NORM_MAX_LANES];
    float slope[NORM_MAX_LANES]; /* backward alone */
    float shift[NORM_MAX_LANES];
} norm_line;

/* Planes of one block of channels, one for each sample: `n` pixels. */
typedef struct norm_planes {
    int64_t n, count;
    int64_t step; /* elements from one to the next */
} norm_planes;

/* Two sums for each lane over some planes. */
typedef struct norm_part {
    double a[NORM_MAX_LANES], b[NORM_MAX_LANES];
} norm_part;

/* Operands of the backward pass for some planes. A bit of `mask` is set where the ReLU let a value
   through; NULL: no ReLU. */
typedef struct norm_back {
    const void *x;
    const void *dy, *more; /* gradient of the call's result: dy + more. more may be NULL */
    void *sum;             /* where the gradient of the sum goes, or NULL; may be dy or more */
    const uint8_t *mask;
    bool mask_sum; /* whether the gradient for `sum` is masked */
} norm_back;

/* Bytes of a mask for so many elements: a vector has whole ones. */
static inline int64_t norm_mask_bytes(int64_t elements, int lanes)
{
    return elements / (lanes < 8 ? lanes : 8);
}

/* Loops over some planes, compiled once for each instruction set. All tensors of a call have the
   same layout, with `cell` bytes an element, floats or BF16, and all arithmetic is in fp32. */
typedef struct norm_loops {
    int lanes; /* channels of a block */
    size_t cell;
    /* a: mean; b: sum (x - mean)^2. x is read from memory once. */
    void (*measure)(norm_part *out, const void *x, const norm_planes *planes);
    /* y = (x - mean) scale + shift, then the epilogue; `other` is the addend. `mask` gets a bit for
       each element, see above; NULL: not wanted. y may be x or other. */
    void (*apply)(void *y, uint8_t *mask, const void *x, const void *other, const norm_line *line,
                  norm_tail tail, const norm_planes *planes);
    /* a: sum d; b: sum d (x - mean), where d is the gradient of the norm's result */
    void (*reduce)(norm_part *out, const norm_back *back, const norm_line *line,
                   const norm_planes *planes);
    /* dx = d scale + (x - mean) slope + shift. dx may be any of the gradients read. */
    void (*gradient)(void *dx, const norm_back *back, const norm_line *line,
                     const norm_planes *planes);
} norm_loops;

KERNELS_DECLARE(norm_loops, norm_loops);
#ifdef CO_KERNELS_X86
extern const norm_loops norm_loops_bf16, norm_loops_bf16_wide;
#endif
extern const norm_loops norm_loops_basic;

#endif
