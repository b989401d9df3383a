/*
 * wino.h - 3x3 convolution of stride 1 by Winograd's algorithm F(4x4, 3x3) (Lavin & Gray,
 * arXiv:1509.09308) on oneDNN's blocked images, (N, C / 16, H, W, 16): what its loops and the rest
 * of it share.
 *
 * A tile of 4 x 4 outputs sees a patch of 6 x 6 inputs. With the transforms B, G and A,
 *
 *   V = B' x B,   U = G w G',   M = sum over input channels of U V, point by point,   y = A' M A
 *
 * so that each of the 36 points is a matrix product over tiles and channels. The gradient of the
 * inputs is such a convolution of dy with the weight turned around; that of the weight is
 * dU = sum over tiles of V (A dy A'), dw = G' dU G.
 */
#ifndef CO_BACKENDS_ONEDNN_WINO_H
#define CO_BACKENDS_ONEDNN_WINO_H

#include "backends/onednn/onednn.h"

#define WINO_LANES  16
#define WINO_TILE   4 /* outputs, each way */
#define WINO_PATCH  6
#define WINO_TAPS   9
#define WINO_POINTS (WINO_PATCH * WINO_PATCH)

/* Where the tiles of images lie: the first at (top, left), which may be in the padding, each next
   one WINO_TILE further. Counted from left to right, rows downward, images one after another. */
typedef struct wino_grid {
    int64_t h, w, top, left;
    int64_t rows, columns; /* tiles of an image */
    int64_t image;         /* numbers from an image to the next */
} wino_grid;

/* Loops over one block of channels, or over one point. What has points is an array for each,
   `apart` floats from one to the next: V (in / 16, tiles, 16), M (out / 16, tiles, 16), and U and
   dU (out / 16, in, 16). Weights are plain, (out, in, 3, 3), and floats, which are rounded to the
   type of the images as they are read; gradients of weights are floats. */
typedef struct wino_loops {
    const char *name; /* for profiles */
    size_t cell;      /* bytes of a number of x and y: floats, or BF16 */
    /* Tiles `first` to `end` of a block to V: patches, and outputs' gradients. What these are in
       all is added to `sum` (16), which may be NULL. */
    void (*spread_patch)(float *v, int64_t apart, const void *x, const wino_grid *grid,
                         int64_t first, int64_t end);
    void (*spread_tile)(float *v, int64_t apart, float *sum, const void *dy, const wino_grid *grid,
                        int64_t first, int64_t end);
    /* From M to a block of outputs, on top of its bias, which may be NULL. */
    void (*gather_tile)(void *y, const wino_grid *grid, const float *m, int64_t apart,
                        const float *bias, int64_t first, int64_t end);
    /* 16 output channels of a weight to U. `work` (in, 9, 16). */
    void (*spread_weight)(float *u, int64_t apart, float *work, const float *w, int64_t in);
    /* 16 input channels of it, with inputs and outputs exchanged and the taps turned around: to
       (out, 16). `w` is at the first of them. */
    void (*spread_turned)(float *u, int64_t apart, const float *w, int64_t in, int64_t out);
    /* From dU to 16 output channels of the weight's gradient; `add` to it. `work` as above. */
    void (*gather_weight)(float *dw, const float *u, int64_t apart, float *work, int64_t in,
                          bool add);
    /* m = sum over the input channels of u v */
    void (*multiply)(float *m, const float *v, const float *u, int64_t tiles, int64_t in_blocks,
                     int64_t out_blocks);
    /* du = sum over tiles of v dy; `add` to it */
    void (*correlate)(float *du, const float *v, const float *dy, int64_t tiles, int64_t in_blocks,
                      int64_t out_blocks, bool add);
} wino_loops;

#ifdef CO_ONEDNN_X86
extern const wino_loops wino_loops_avx512, wino_loops_bf16;
/* The products of both: in floats. */
void wino_multiply_avx512(float *m, const float *v, const float *u, int64_t tiles,
                          int64_t in_blocks, int64_t out_blocks);
void wino_correlate_avx512(float *du, const float *v, const float *dy, int64_t tiles,
                           int64_t in_blocks, int64_t out_blocks, bool add);
#endif

/* How a product's work is cut to fit the caches, and its scratch memory, offsets in floats. */
typedef struct wino_cut {
    int64_t tiles, chunk;              /* in all, and at a time */
    int64_t blocks, group;             /* of output channels, in all and at a time */
    int64_t v_apart, m_apart, u_apart; /* floats between points; M: also of dy's tiles */
    int64_t v, m, u, work;             /* offsets */
    int64_t floats;
} wino_cut;

/* A part of conv2d's self. */
typedef struct wino {
    const wino_loops *loops; /* NULL: oneDNN's own kernels run the call */
    int64_t in_blocks, out_blocks;
    wino_grid patches, outputs;         /* of the forward pass: on the input, on the output */
    wino_grid back_patches, back_tiles; /* of the inputs' gradient: on dy, on dx */
    wino_cut forward, back, weight;
    onednn_operand src, back_src, grad_out; /* blocked */
    size_t forward_at, backward_at;         /* in scratch */
} wino;

/* --- wino.c --- */
/* Whether it knows how, and this machine. */
bool wino_supports(const co_call *call);
co_status wino_plan(wino *self, co_call *call, onednn_self *base);
co_status wino_plan_backward(wino *self, co_call *call, onednn_self *base);
co_status wino_forward(const wino *self, const co_call *call);
co_status wino_backward(const wino *self, const co_call *call, bool accumulate);

#endif
