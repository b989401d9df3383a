/*
 * small_conv.h - loops for convolution of small images in blocks of channels, (N, C / lanes, H, W,
 * lanes), as products for exactly those taps that meet the image.
 */
#ifndef CO_KERNELS_SMALL_CONV_H
#define CO_KERNELS_SMALL_CONV_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/levels.h"

/* Offsets of two operands that are multiplied, in floats: of two pixels, or of a pixel and of the
   weights of a tap. */
typedef struct small_conv_pair {
    int32_t a, b;
} small_conv_pair;

/* A blocked tensor; steps in floats. */
typedef struct small_conv_image {
    int64_t blocks;        /* of channels */
    int64_t block, sample; /* from one to the next */
} small_conv_image;

/* The weight in the format of the store, (out, in, kernel), and which of its taps are used. */
typedef struct small_conv_weight {
    int64_t out, in, kernel;
    int64_t taps;
    const int64_t *tap;    /* (taps) */
    const int64_t *number; /* (kernel) the index of each among those used, or -1 */
} small_conv_weight;

/* Where the result of a pixel or of a tap begins, and the pairs it is summed from. */
typedef struct small_conv_sum {
    const small_conv_pair *pair;
    int64_t pairs;
    int64_t samples;
} small_conv_sum;

/* Compiled once for each instruction set. */
typedef struct small_conv_loops {
    const char *name;
    int lanes;
    /* y = bias + sum over pairs and channels c of x[a + c] w[b + c lanes], for each sample and for
       one or two `blocks` of the result; w has a block of the result every `panel` floats; bias may
       be NULL. */
    void (*multiply)(float *y, const small_conv_image *ys, const float *x,
                     const small_conv_image *xs, const float *w, int64_t panel, const float *bias,
                     int64_t blocks, const small_conv_sum *sum);
    /* dw[c] = sum over samples and pairs of x[a + c] dy[b], for all channels c and one or two
       `blocks` of dy; dw has a block every `panel` floats. */
    void (*gradient)(float *dw, int64_t panel, const float *x, const small_conv_image *xs,
                     const float *dy, const small_conv_image *dys, int64_t blocks,
                     const small_conv_sum *sum);
    /* sum[lane] (+)= sum over samples of a block's `pixels` vectors */
    void (*add_up)(float *sum, const float *dy, const small_conv_image *dys, int64_t pixels,
                   int64_t samples, bool add);
    /* The weight for `multiply`, block `k` of the outputs: (taps, in, lanes). */
    void (*pack)(float *to, const float *weight, const small_conv_weight *shape, int64_t k);
    /* For the gradient of the input, block `k` of the inputs, from all outputs: (taps, out,
       lanes). */
    void (*turn)(float *to, const float *packed, const small_conv_weight *shape, int64_t k);
    /* The weight's gradient (=, or +=) from what `gradient` has computed for block `k`; taps that
       are not used get 0. */
    void (*unpack)(float *grad, const float *dw, const small_conv_weight *shape, int64_t k,
                   bool add);
} small_conv_loops;

KERNELS_DECLARE(small_conv_loops, small_conv_loops);

#endif
