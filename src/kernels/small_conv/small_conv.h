/*
 * small_conv.h - loops for convolution of small images in blocks of channels, (N, C / lanes, H, W,
 * lanes), as products for exactly those taps that meet the image.
 */
#ifndef CO_KERNELS_SMALL_CONV_H
#define CO_KERNELS_SMALL_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/levels.h"

/*
 * Products are made of words: floats, or two neighbours of BF16, whose products are added up in
 * fp32.
 */

/* Offsets of two operands that are multiplied, in words: of two pixels, or of a pixel and of the
   weights of a tap. */
typedef struct small_conv_pair {
    int32_t a, b;
} small_conv_pair;

/* A blocked tensor; steps in words, of results in numbers. */
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
    int words;   /* of a pixel of a block */
    size_t cell; /* size of a number of x, y and dy */
    /* y = bias + sum over pairs and words c of x[a + c] w[b + c lanes], for each sample and for one
       or two `blocks` of the result; w has a block of the result every `panel` words; bias may be
       NULL. */
    void (*multiply)(void *y, const small_conv_image *ys, const float *x,
                     const small_conv_image *xs, const float *w, int64_t panel, const float *bias,
                     int64_t blocks, const small_conv_sum *sum);
    /* dw[c] = sum over samples and pairs of x[a + c] dy[b], for all channels c and one or two
       `blocks` of dy; dw has a block every `panel` floats. With BF16 a word is a number of two
       samples, as `join` makes them. */
    void (*gradient)(float *dw, int64_t panel, const float *x, const small_conv_image *xs,
                     const float *dy, const small_conv_image *dys, int64_t blocks,
                     const small_conv_sum *sum);
    /* sum[lane] (+)= sum over samples of a block's `pixels` vectors */
    void (*add_up)(float *sum, const void *dy, const small_conv_image *dys, int64_t pixels,
                   int64_t samples, bool add);
    /* With BF16, else NULL: `n` numbers of two samples, of which the second may be NULL, for 0, to
       words; and `n` packed weights to n / 2 words in place. */
    void (*join)(float *to, const void *first, const void *second, int64_t n);
    void (*halve)(float *weight, int64_t n);
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
#ifdef CO_KERNELS_X86
extern const small_conv_loops small_conv_loops_bf16;
#endif

#endif
