/*
 * sample_lanes.h - loops of small networks, whose vectors hold samples.
 *
 * A network with few channels leaves most of a vector register empty when channels are its lanes.
 * Here the lanes are samples: every channel count and every image width fills them, and an op needs
 * no shuffle and no remainder loop.
 *
 * A tensor (N, ...) lies in blocks of `lanes` samples; within a block (..., lanes). The lanes
 * behind the last sample hold finite numbers in values, and zeros in gradients.
 */
#ifndef CO_KERNELS_SAMPLE_LANES_H
#define CO_KERNELS_SAMPLE_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng.h"

#define LANES_MOST            16
#define LANES_WINOGRAD_PLACES 64  /* of a tile of Winograd's algorithm */
#define LANES_WINOGRAD_ROWS   4   /* of its output */
#define LANES_NOWHERE         255 /* the place of a maximum whose gradient ReLU stops */

/* A correlation of stride 1 within one block. The planes that it reads have `pad_w` columns of
   zeros on both sides; rows outside the image are left out. */
typedef struct lanes_window {
    int64_t c, h, w;        /* read: channels, rows, columns without those of padding */
    int64_t o, oh, ow;      /* written */
    int64_t kh, kw;         /* taps */
    int64_t step_h, step_w; /* from tap to tap */
    int64_t pad_h, pad_w;
} lanes_window;

/* The gradients of a convolution without dilation, by the elements of the output's gradient that
   are not zero: spots. A sample is (h, w, c) with padding, and a vector of room behind, as vectors
   reach beyond the end of a row. */
typedef struct lanes_sparse {
    int64_t c, h, w, o, oh, ow, kh;
    int64_t pad_h, pad_w, stride_h, stride_w;
    int64_t fold;        /* 1; or c and kh say: so many rows are channels, of taps and of images */
    int64_t plane;       /* vectors from channel to channel */
    int64_t row, sample; /* floats of a padded row, of a sample */
    int64_t step;        /* floats from one row of taps to the next: fold rows */
    int64_t part;        /* floats of a row of one channel's weight, (kw, c): whole vectors */
    int64_t spots, room; /* of one sample: at most, and with a vector behind */
    bool pooled;         /* oh, ow: windows, and the strides are from one to the next */
    int32_t window_w, place_h, place_w; /* pooled: places in a row; floats from place to place */
} lanes_sparse;

/* (samples, room): values, and the first element that each saw of its sample; (samples, o): behind
   each channel's last. */
typedef struct lanes_spots {
    float *value;
    int32_t *at, *end;
} lanes_spots;

/* Pooling windows within one plane, without padding columns in memory. */
typedef struct lanes_pool {
    int64_t h, w, oh, ow;
    int64_t kh, kw, sh, sw, ph, pw;
} lanes_pool;

/* The loops that depend on the number of lanes, compiled once for each instruction set. A plane is
   `n` vectors. */
typedef struct lanes_loops {
    const char *name; /* of the instruction set */
    int lanes;
    double spot_cost; /* to list a spot, in products of vectors */
    /* (N, count) row-major <-> blocks */
    void (*pack)(float *to, const float *from, int64_t n, int64_t count);
    void (*unpack)(float *to, const float *from, int64_t n, int64_t count);
    /* y[o][u][v] = bias[o] + sum_{c,i,j} x[c][u + i][v + j] weight[o][c][i][j]; bias may be NULL */
    void (*correlate)(float *y, const float *x, const float *weight, const float *bias,
                      const lanes_window *window);
    /* sum[o][c][i][j] += sum_{u,v} dy[o][u][v] x[c][u + i][v + j], for each lane; and
       bias_sum[o] += sum_{u,v} dy[o][u][v] */
    void (*correlate_weight)(float *sum, float *bias_sum, const float *dy, const float *x,
                             const lanes_window *window);
    /* The same as correlate, for windows that lanes_winograd_pays takes: first the weight's form
       (64, stride of lanes_winograd_stride); `room`: wino_room floats. */
    void (*wino_weight)(float *to, const float *weight, const lanes_window *window);
    int64_t (*wino_room)(const lanes_window *window);
    void (*wino)(float *y, float *room, const float *x, const float *weight, const float *bias,
                 const lanes_window *window);
    /* to[i] = sum over the lanes of from[i], or += */
    void (*reduce)(float *to, const float *from, int64_t n, bool add);
    /* `place` (oh, ow) vectors of bytes: which tap of its window was largest; may be NULL */
    void (*maxpool)(float *y, uint8_t *place, const float *x, const lanes_pool *pool);
    void (*maxpool_gradient)(float *dx, const uint8_t *place, const float *dy,
                             const lanes_pool *pool);
    /* ReLU behind maxpool: n vectors, and LANES_NOWHERE where it is zero; place may be NULL */
    void (*relu_place)(float *y, uint8_t *place, int64_t n);
    void (*relu)(float *y, const float *x, int64_t n);
    void (*relu_gradient)(float *dx, const float *y, const float *dy, int64_t n);
    void (*add)(float *y, const float *a, const float *b, int64_t n);
    /* mark (n, lanes): all ones where the upper 24 bits of the lane's item's word are below */
    void (*mark)(int32_t *mark, const co_rng *rng, const uint32_t *item, uint32_t below, int64_t n);
    /* y = x * scale in lanes where drop is 0, else 0 */
    void (*drop)(float *y, const float *x, const int32_t *drop, float scale, int64_t n);
    /* The same where each of n elements has its own mark; anywhere in memory. */
    void (*drop_each)(float *y, const float *x, const int32_t *drop, float scale, int64_t n);
    /* for each lane: sum x; sum (x - shift)^2; sum (x - shift) z */
    void (*sum)(float *sum, const float *x, int64_t n);
    void (*sum_squares)(float *sum, const float *x, float shift, int64_t n);
    void (*sum_products)(float *sum, const float *x, float shift, const float *z, int64_t n);
    /* y = a x + b z + c; z may be NULL */
    void (*combine)(float *y, const float *x, float a, const float *z, float b, float c, int64_t n);
    /* (c, h, w, lanes) -> samples (h, w, c), and back */
    void (*split)(float *to, const float *x, const lanes_sparse *sparse);
    void (*join)(float *x, const float *from, const lanes_sparse *sparse);
    /* Elements of n vectors that are not zero; place: NULL, or LANES_NOWHERE is zero, too. */
    int64_t (*count)(const float *x, const uint8_t *place, int64_t n);
    /* The spots of a block, by channel; bias_sum[o] += sum of dy[o], for each lane. place: NULL,
       or dy is of maxima, and each stands there in its window. */
    void (*list)(const lanes_spots *to, float *bias_sum, const float *dy, const uint8_t *place,
                 const lanes_sparse *sparse);
    /* sum[o][i][j, c] += sum over the spots of `samples` samples of value * what it saw */
    void (*sparse_weight)(float *sum, const float *x, const lanes_spots *spots, int64_t samples,
                          const lanes_sparse *sparse);
    /* dx of one sample += value * weight[o][i][j, c] where each spot looked */
    void (*sparse_data)(float *dx, const float *weight, const lanes_spots *spots,
                        const lanes_sparse *sparse);
} lanes_loops;

#ifdef CO_KERNELS_X86
extern const lanes_loops lanes_loops_avx2, lanes_loops_avx512;
#endif
extern const lanes_loops lanes_loops_basic;

/* The loops that this machine can run, widest first, ended by NULL; and the widest. */
const lanes_loops *const *lanes_find_all(void);
const lanes_loops *lanes_choose(void);

/* Whether Winograd's algorithm is for this window, and faster. */
bool lanes_winograd_pays(const lanes_window *window);
/* Floats from one place of a weight's form to the next. */
int64_t lanes_winograd_stride(const lanes_window *window);

#endif
