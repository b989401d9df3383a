/*
 * phase_conv.h - convolution of few channels with a stride by Winograd's algorithm: its loops.
 *
 * With stride s the pixels of an image whose rows and columns leave the same rests when they are
 * divided by s are a phase of it. A convolution of k x k taps is the sum of s * s convolutions of
 * stride 1, of each phase with its r x r taps, r = k / s rounded up. So channels and phases
 * together are `depth` inputs of F(4x4, r x r), which makes (r + 3)^2 products where the definition
 * has 16 r^2 (Lavin & Gray, arXiv:1509.09308): with the transforms B, G and A
 *
 *   V = B' x B,   U = G w G',   M = sum over inputs of U V, point by point,   y = A' M A
 *
 * and for the gradient of the weight dU = sum over tiles of V (A dy A'), dw = G' dU G.
 */
#ifndef CO_KERNELS_PHASE_CONV_H
#define CO_KERNELS_PHASE_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/levels.h"

#define PHASE_CONV_TILE       4 /* results, each way */
#define PHASE_CONV_LEAST_TAPS 3
#define PHASE_CONV_MOST_TAPS  4

/*
 * A row of tiles of one image. Of its `points`^2 points, V is (points^2, depth / lanes, tiles,
 * lanes), M (points^2, blocks, tiles, lanes), with `v_apart` and `m_apart` floats from a point to
 * the next; `tiles` are those of several rows, of which this one has its `columns` from the address
 * given on. U and dU are (points^2, blocks, depth, lanes).
 */
typedef struct phase_conv_row {
    int taps, points; /* of a phase; of a tile's patch; each way */
    int64_t stride, channels, depth;
    int64_t columns, tiles;
    int64_t v_apart, m_apart;
    int64_t rows, pixels; /* results inside the image: rows of the first tile, pixels of all */
    int64_t y_row;        /* numbers from a row of results to the next */
    int64_t y_pixel;      /* and from a pixel */
} phase_conv_row;

/* A weight, (channels, kernel, kernel, lanes) of one block of results. */
typedef struct phase_conv_weight {
    int taps, points;
    int64_t stride, channels, depth, kernel;
    int64_t apart; /* floats from a point of U to the next */
} phase_conv_weight;

/* Compiled once for each instruction set. */
typedef struct phase_conv_loops {
    const char *name;
    int lanes;
    size_t cell; /* size of a number of y and dy */
    /* The pixels that a row of tiles sees, (channels, points stride, pixels stride), to (points,
       pixels, depth in whole vectors), with pixels = 4 columns + taps - 1. */
    void (*split)(float *to, const float *planes, const phase_conv_row *row);
    void (*input_transform)(float *v, const float *phases, const phase_conv_row *row);
    /* From M of a block to y, added to the block's bias, which may be NULL. */
    void (*output_transform)(void *y, const float *m, const float *bias, const phase_conv_row *row);
    /* From dy of a block to M. */
    void (*gradient_transform)(float *m, const void *dy, const phase_conv_row *row);
    /* Of one point: m = sum over the depth of u v; du += sum over tiles of v m. */
    void (*multiply)(float *m, const float *v, const float *u, int64_t blocks,
                     const phase_conv_row *row);
    void (*correlate)(float *du, const float *v, const float *m, int64_t blocks,
                      const phase_conv_row *row);
    void (*filter_transform)(float *u, const float *weight, const phase_conv_weight *shape);
    void (*filter_gradient)(float *weight, const float *du, const phase_conv_weight *shape);
} phase_conv_loops;

KERNELS_DECLARE(phase_conv_loops, phase_conv_loops);
#ifdef CO_KERNELS_X86
extern const phase_conv_loops phase_conv_loops_bf16;
#endif

#endif
