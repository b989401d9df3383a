/*
 * taps.h - convolution of small images on oneDNN's blocked layout, (N, C / lanes, H, W, lanes), as
 * products for exactly those taps that meet the image: what its loops and the rest of it share.
 */
#ifndef CO_BACKENDS_ONEDNN_TAPS_H
#define CO_BACKENDS_ONEDNN_TAPS_H

#include "backends/onednn/onednn.h"

/* Two places that are multiplied, in floats from the first of each: of pixels, or of a pixel and of
   a tap's weights. */
typedef struct taps_pair {
    int32_t a, b;
} taps_pair;

/* Pairs by what they give: those of k are pair[end[k - 1]] to pair[end[k] - 1]. */
typedef struct taps_list {
    int32_t n;
    int32_t *end;    /* owned; (n) */
    taps_pair *pair; /* owned */
} taps_list;

/* A blocked tensor; steps in floats. */
typedef struct taps_image {
    int64_t blocks;        /* of channels */
    int64_t block, sample; /* from one to the next */
} taps_image;

/* The weight as it lies in the store, (out, in, kernel); those of its taps that count. */
typedef struct taps_weight {
    int64_t out, in, kernel;
    int64_t taps;
    const int64_t *tap;    /* (taps) */
    const int64_t *number; /* (kernel) each one's among those that count, or -1 */
} taps_weight;

/* Where the result of a pixel or of a tap begins, and what it is made of. */
typedef struct taps_sum {
    const taps_pair *pair;
    int64_t pairs;
    int64_t samples;
} taps_sum;

/* Compiled once for each instruction set. */
typedef struct taps_loops {
    const char *name;
    int lanes;
    /* y = bias + sum over pairs and channels c of x[a + c] w[b + c lanes], for each sample and for
       one or two `blocks` of the result; w has a block of the result every `panel` floats; bias may
       be NULL. */
    void (*multiply)(float *y, const taps_image *ys, const float *x, const taps_image *xs,
                     const float *w, int64_t panel, const float *bias, int64_t blocks,
                     const taps_sum *sum);
    /* dw[c] = sum over samples and pairs of x[a + c] dy[b], for all channels c and one or two
       `blocks` of dy; dw has a block every `panel` floats. */
    void (*gradient)(float *dw, int64_t panel, const float *x, const taps_image *xs,
                     const float *dy, const taps_image *dys, int64_t blocks, const taps_sum *sum);
    /* sum[lane] (+)= sum over samples of a block's `pixels` vectors */
    void (*add_up)(float *sum, const float *dy, const taps_image *dys, int64_t pixels,
                   int64_t samples, bool add);
    /* The weight for `multiply`, block `k` of the outputs: (taps, in, lanes). */
    void (*pack)(float *to, const float *weight, const taps_weight *shape, int64_t k);
    /* For the gradient of the input, block `k` of the inputs, from all of the above: (taps, out,
       lanes). */
    void (*turn)(float *to, const float *packed, const taps_weight *shape, int64_t k);
    /* The weight's gradient (=, or +=) from what `gradient` has made of block `k`; other taps' are
       0. */
    void (*unpack)(float *grad, const float *dw, const taps_weight *shape, int64_t k, bool add);
} taps_loops;

#ifdef CO_ONEDNN_X86
extern const taps_loops taps_loops_avx2, taps_loops_avx512;
#endif

/* --- taps.c: the life of a convolution that taps_choose has loops for --- */
typedef struct taps {
    const taps_loops *loops; /* NULL: oneDNN runs the call */
    taps_image in, out;
    int64_t in_pixels, out_pixels;
    taps_weight weight;
    int64_t *tap;                      /* owned; weight's arrays */
    taps_list forward, data, gradient; /* by output pixel, by input pixel, by tap */
    int64_t panel, panel_back;         /* floats of a block of packed weights */
    size_t packed_at, gradient_at;     /* in scratch: forward, backward */
    onednn_operand grad_out;           /* as the output lies */
} taps;

/* The loops that run the call faster than oneDNN does, or NULL. */
const taps_loops *taps_choose(const co_call *call);
/* After onednn_begin, where there are such loops. */
co_status taps_plan(taps *self, co_call *call);
co_status taps_plan_backward(taps *self, co_call *call);
/* Behind the programs that bring their operands into the layout. */
void taps_forward(const taps *self, co_call *call);
void taps_backward(const taps *self, co_call *call, const co_run *run);
void taps_fini(taps *self);

#endif
