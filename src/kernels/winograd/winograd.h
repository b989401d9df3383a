/*
 * winograd.h - 3x3 and 5x5 convolution of stride 1 by Winograd's algorithm F(m x m, r x r) (Lavin &
 * Gray, arXiv:1509.09308) on images in blocks of channels, (N, C / lanes, H, W, lanes): its loops.
 *
 * A tile of m x m outputs sees a patch of (m + r - 1) x (m + r - 1) inputs. With the transforms B,
 * G and A,
 *
 *   V = B' x B,   U = G w G',   M = sum over input channels of U V, point by point,   y = A' M A
 *
 * so that each of the (m + r - 1)^2 points is a matrix product over tiles and channels. Larger
 * tiles multiply less and round more: for an output of 3x3 taps 2.25 times with m = 4, 1.65 with
 * 7, 1.56 with 8; of 5x5 taps 4 times with m = 4. The gradient of the inputs is such a convolution
 * of dy with the weight turned around; that of the weight is dU = sum over tiles of V (A dy A'), dw
 * = G' dU G.
 */
#ifndef CO_KERNELS_WINOGRAD_H
#define CO_KERNELS_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/levels.h"

/* The grid of tiles over the images: the first tile is at (top, left), which may be in the padding,
   the next ones `tile` further. Counted from left to right, rows downward, images one after
   another. */
typedef struct winograd_grid {
    int64_t h, w, top, left;
    int64_t rows, columns; /* tiles of an image */
    int64_t image;         /* elements from an image to the next */
} winograd_grid;

/* Loops over one block of channels, or over one point. What has points is an array for each,
   `apart` floats from one to the next: V (in / lanes, tiles, lanes), M (out / lanes, tiles, lanes),
   and U and dU (out / lanes, in, lanes). Weights are plain, (out, in, side, side), and floats,
   which are rounded to the type of the images as they are read; gradients of weights are floats. */
typedef struct winograd_loops {
    const char *name; /* for profiles */
    int lanes;        /* channels of a block */
    int tile, side;   /* outputs of a tile, taps of a kernel, each way */
    int points;       /* (tile + side - 1)^2 */
    size_t cell;      /* bytes of an element of x and y: float or BF16 */
    /* Transform patches `first` to `end` of a block, or tiles of the outputs' gradient, to V. The
       sum of the latter is added to `sum` (lanes), which may be NULL. */
    void (*spread_patch)(float *v, int64_t apart, const void *x, const winograd_grid *grid,
                         int64_t first, int64_t end);
    void (*spread_tile)(float *v, int64_t apart, float *sum, const void *dy,
                        const winograd_grid *grid, int64_t first, int64_t end);
    /* From M to a block of outputs; added to its bias, which may be NULL. */
    void (*gather_tile)(void *y, const winograd_grid *grid, const float *m, int64_t apart,
                        const float *bias, int64_t first, int64_t end);
    /* `in` input channels of a block of output channels of a weight to U, of rows that are `row`
       floats apart. `work` (in, side^2, lanes). */
    void (*spread_weight)(float *u, int64_t apart, float *work, const float *w, int64_t row,
                          int64_t in);
    /* A block of input channels of it, with inputs and outputs exchanged and the taps rotated by
       180 degrees: to (out, lanes). `w` is at the first of them. */
    void (*spread_turned)(float *u, int64_t apart, const float *w, int64_t row, int64_t out);
    /* From dU to a block of output channels of the weight's gradient; `add` to it. `row`, `work`
       and `in` as above. */
    void (*gather_weight)(float *dw, const float *u, int64_t apart, float *work, int64_t row,
                          int64_t in, bool add);
    /* m = sum over the input channels of u v; `add` to it */
    void (*multiply)(float *m, const float *v, const float *u, int64_t tiles, int64_t in_blocks,
                     int64_t out_blocks, bool add);
    /* du = sum over tiles of v dy; `add` to it */
    void (*correlate)(float *du, const float *v, const float *dy, int64_t tiles, int64_t in_blocks,
                      int64_t out_blocks, bool add);
} winograd_loops;

KERNELS_DECLARE(winograd_loops, winograd_loops);
KERNELS_DECLARE(winograd_loops, winograd5x5_loops);
#ifdef CO_KERNELS_X86
extern const winograd_loops winograd_loops_bf16, winograd_loops_bf16_7, winograd_loops_bf16_8,
    winograd5x5_loops_bf16;
#endif

#endif
