/*
 * direct_conv.h - loops for convolution by its definition, of any stride, size of kernel, padding
 * and dilation: products over the channels of one tap after the other, with results in registers.
 *
 * Results are in blocks of channels, (C / lanes, H, W, lanes). What they are summed from is either
 * in blocks, too, and then a step of a sum is all channels of a block at one tap; or it has few
 * channels and is plain, and a step is one channel at one tap. Where a convolution has padding,
 * `spread` makes an image with it first.
 */
#ifndef CO_KERNELS_DIRECT_CONV_H
#define CO_KERNELS_DIRECT_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/levels.h"

/* Blocks of results that all loops compute at once. */
#define DIRECT_CONV_TOGETHER 2
#define DIRECT_CONV_AFTER    16

/*
 * Products are made of words: floats, or two neighbours of BF16, whose products are added up in
 * fp32. A pixel of a block is `words` of them. Loops whose tensors are of BF16 and whose words are
 * floats read copies of images, which `spread` makes, and `pack` rounds weights for them.
 */

/* What a result is summed from, relative to its first pixel: an offset in words for each step. */
typedef struct direct_conv_sum {
    const int64_t *at; /* (steps) */
    int64_t steps;
    bool blocks; /* a step is a block of channels; else a word */
} direct_conv_sum;

/* A rectangle of results and the pixels they begin at; steps in numbers of y, and in words. */
typedef struct direct_conv_area {
    int64_t rows, pixels; /* pixels: of a row */
    int64_t y_row, y_pixel, y_block;
    int64_t x_row, x_pixel;
    bool fetch; /* without `lines`: x is in no cache near to the core, so it is fetched ahead */
    bool past;  /* with `lines`: results go past the caches, which are too small for them */
} direct_conv_area;

/* Pixels that a gradient of the weight is summed over; steps in words. With BF16 and blocks they
   are pairs of pixels, as `pair` makes them; with few channels `join` has made them of two
   samples. */
typedef struct direct_conv_walk {
    int64_t samples, rows, pixels;
    int64_t x_sample, x_row, x_pixel;
    int64_t dy_sample, dy_row, dy_block;
    int64_t columns; /* of the kernel, if steps that are so many apart read the same copy; else 0 */
} direct_conv_walk;

/* A copy of a plane: its pixel (r, c) is (top + r step[0], left + c step[1]) of the image, or 0
   outside of it. Only `pair` and, of blocks, `spread` have steps other than 1. */
typedef struct direct_conv_spread {
    int64_t h, w;          /* of the image */
    int64_t rows, columns; /* of the copy */
    int64_t top, left;
    const int64_t *step; /* (2) */
    bool blocks;         /* a pixel is a block of channels; else one number */
    bool again;          /* there was such a copy in the same place, whose zeros need not be written
                            again */
    int64_t after;       /* of `pair`: zero pairs that follow */
    int64_t sample;      /* of `lines`: words from an image to the next, if there are more rows */
} direct_conv_spread;

/* A weight in the format of the store, (out, in, taps). In blocks of `lanes` outputs it is
   (in / lanes, taps, lanes in, lanes out), or (in, taps, lanes out) for few channels. */
typedef struct direct_conv_weight {
    int64_t out, in, taps;
    bool blocks;
} direct_conv_weight;

/* Compiled once for each instruction set. */
typedef struct direct_conv_loops {
    const char *name;
    int lanes;    /* channels of a block */
    int few;      /* images of so many channels and fewer are read in the plain layout */
    int words;    /* of a pixel of a block */
    size_t cell;  /* size of a number of y and dy */
    int together; /* blocks of results that `multiply` computes at once, at most */
    /* y = bias + sum over steps and words of x w, for `columns` blocks of results, at most
       `together`; w has a block every `panel` words; bias may be NULL. */
    void (*multiply)(void *y, const float *x, const float *w, int64_t panel, const float *bias,
                     int columns, const direct_conv_area *area, const direct_conv_sum *sum);
    /* dw (=, or +=) sum over pixels of x dy, for each step and channel, in the order of w. */
    void (*correlate)(float *dw, int64_t panel, const float *x, const float *dy, int columns,
                      const direct_conv_walk *walk, const direct_conv_sum *sum, bool add);
    /* sum[lane] += sum of `pixels` vectors */
    void (*add_up)(float *sum, const void *dy, int64_t pixels);
    /* Of one channel: to floats. */
    void (*spread)(float *to, const void *from, const direct_conv_spread *how);
    /* With pairs, else NULL: `n` words from twice as many floats in rows of `row`, of which
       neighbours become pairs; of tiles, each half of a square's columns for itself. */
    void (*halve)(float *to, const float *from, int64_t n, int64_t row);
    /* With pairs and few channels, else NULL: a copy of two planes of single numbers as words, of
       two channels or two samples. `second` may be NULL, for 0; `columns`, and those before the
       image, are whole vectors. */
    void (*join)(float *to, const void *first, const void *second, const direct_conv_spread *how);
    /* With pairs, else NULL: a copy of a plane of a block, (rows, pairs of columns, lanes), in
       which neighbouring pixels are pairs; after an odd number of columns comes a 0. */
    void (*pair)(float *to, const void *from, const direct_conv_spread *how);
    /* If not NULL, `correlate` reads DIRECT_CONV_AFTER pairs at once: x has as many zero pairs
       after each plane, and dy is such a copy, (pairs / DIRECT_CONV_AFTER, lanes,
       DIRECT_CONV_AFTER), which ends with zeros up to a multiple. And dw has squares of output by
       input channels, where w has input by output. */
    void (*lines)(float *to, const void *from, const direct_conv_spread *how);
    /* Block `k` of outputs, from the store's format; padding is 0. */
    void (*pack)(float *to, const float *weight, const direct_conv_weight *shape, int64_t k);
    /* A square of packed weights, `lanes` input by `lanes` output channels, to output by input; of
       pairs, too. */
    void (*turn)(float *to, const float *from);
    /* Back to the store's format: =, or +=. */
    void (*unpack)(float *weight, const float *from, const direct_conv_weight *shape, int64_t k,
                   bool add);
} direct_conv_loops;

extern const direct_conv_loops direct_conv_loops_basic;
KERNELS_DECLARE(direct_conv_loops, direct_conv_loops);
#ifdef CO_KERNELS_X86
extern const direct_conv_loops direct_conv_loops_bf16, direct_conv_loops_widened,
    direct_conv_loops_amx;
#endif

/* The widest that this process may use for floats. */
const direct_conv_loops *direct_conv_choose(void);

#endif
