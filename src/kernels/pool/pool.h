/*
 * pool.h - loops for maxima and means over windows of images in blocks of channels, (C / lanes, H,
 * W, lanes): one block at a time.
 */
#ifndef CO_KERNELS_POOL_H
#define CO_KERNELS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/levels.h"

#define POOL_MOST_PLACES 255 /* pixels of a window: a place is a byte */

/* (rows, columns) each: of the image, of the result, and of the windows. */
typedef struct pool_shape {
    int64_t in[2], out[2];
    int64_t kernel[2], stride[2], padding[2];
    bool counts_padding; /* a mean's divisor is the kernel's size, wherever the window is */
} pool_shape;

/* Compiled once for each instruction set and type of numbers. */
typedef struct pool_loops {
    int lanes;   /* channels of a block */
    size_t cell; /* size of a number */
    /* Of equal values the first one wins, and a NaN beats any number. place (out, lanes): which
       pixel of the window it was, or NULL. */
    void (*max)(void *y, uint8_t *place, const void *x, const pool_shape *shape);
    void (*max_gradient)(void *dx, const void *dy, const uint8_t *place, const pool_shape *shape);
    void (*mean)(void *y, const void *x, const pool_shape *shape);
    void (*mean_gradient)(void *dx, const void *dy, const pool_shape *shape);
} pool_loops;

extern const pool_loops pool_loops_basic;
KERNELS_DECLARE(pool_loops, pool_loops);
#ifdef CO_KERNELS_X86
extern const pool_loops pool_loops_bf16, pool_loops_bf16_wide;
#endif

/* The widest that this process may use for floats. */
const pool_loops *pool_choose(void);

#endif
