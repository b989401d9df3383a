/*
 * sample_lanes.h - loops for small networks; vectors hold one element of several samples.
 *
 * With few channels, most of a vector would stay empty if its lanes were channels. Here the lanes
 * are samples: they are full for any number of channels and any image width, and ops need no
 * shuffles and no remainder loops.
 *
 * A tensor (N, ...) is stored in blocks of `lanes` samples, each block as (..., lanes). Lanes after
 * the last sample hold finite numbers in values, and zeros in gradients.
 */
#ifndef CO_KERNELS_SAMPLE_LANES_H
#define CO_KERNELS_SAMPLE_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng.h"
#include "kernels/levels.h"

#define LANES_MOST            16
#define LANES_WINOGRAD_PLACES 64  /* points of a tile of Winograd's algorithm */
#define LANES_WINOGRAD_ROWS   4   /* rows of its output */
#define LANES_NOWHERE         255 /* place of a maximum whose gradient ReLU stops */

/* A correlation of stride 1 within one block. Input planes have `pad_w` columns of zeros on both
   sides in memory; rows outside the image are not stored. */
typedef struct lanes_window {
    int64_t c, h, w;        /* input: channels, rows, columns without padding */
    int64_t o, oh, ow;      /* output */
    int64_t kh, kw;         /* taps */
    int64_t step_h, step_w; /* distance of taps */
    int64_t pad_h, pad_w;
    /* wino of one input channel and at most LANES_WINOGRAD_ROWS rows alone: output channels
       [begin, begin + part), or all with 0; from the second part on, `room` has x's points */
    int64_t begin, part;
} lanes_window;

/* The gradients of a convolution without dilation, computed from the nonzero elements (spots) of
   the output's gradient. A sample is (h, w, c) with padding, plus room for a vector, because
   vectors may extend beyond the end of a row. */
typedef struct lanes_sparse {
    int64_t c, h, w, o, oh, ow, kh; /* h, w: what any output depends on */
    int64_t pad_h, pad_w, stride_h, stride_w;
    int64_t fold;        /* rows of taps and images stored as channels, or 1; included in c and
                            kh */
    int64_t across;      /* vectors per row of the image, w or more */
    int64_t plane;       /* vectors per channel */
    int64_t row, sample; /* floats per padded row, per sample */
    int64_t step;        /* floats from one row of taps to the next: `fold` rows */
    int64_t part;        /* floats of a row of one channel's weight, (kw, c): whole vectors */
    int64_t spots, room; /* per sample: maximum, and that plus a vector */
    bool pooled;         /* oh, ow count windows; strides are between windows */
    int32_t window_w, place_h, place_w; /* pooled: places per row of a window; floats between
                                           places */
} lanes_sparse;

/* Per sample and spot, (samples, room): its value, and the offset of the first element of its
   sample that it depends on. `end` (samples, o): end of each channel's spots. */
typedef struct lanes_spots {
    float *value;
    int32_t *at, *end;
} lanes_spots;

/* The input's gradient is added up by squares of LANES_SQUARE x LANES_SQUARE outputs before
   pooling, whose inputs overlap. */
#define LANES_SQUARE 2

/* Of a spot, by its offset. */
typedef struct lanes_place {
    uint32_t square;
    int32_t weight; /* offset of what it multiplies in a channel's weight, by squares */
} lanes_place;

typedef struct lanes_squares {
    int64_t n, across;  /* of a sample, and of a row of them */
    int64_t room;       /* maximum number of spots in one */
    int64_t rows, span; /* of input: of a square, and floats of one, whole vectors */
    int64_t copies;     /* of a weight: for each column of a square; or 1, shifted by vectors */
    int64_t wide;       /* floats of a row of a weight */
    int64_t channel;    /* floats of a channel's weight: (copies, rows, wide) */
    int64_t ahead;      /* floats of zeros before the first channel's */
    int64_t sample;     /* floats of a gradient (h, w, c) with what squares beyond its end write */
    int64_t places;     /* one for each offset of a spot */
} lanes_squares;

typedef struct lanes_sorted {
    float value;
    int32_t weight;
} lanes_sorted;

/* What sparse_data needs beside the spots: places; a square's weight; room for spots (n, room) and
   their numbers (n). */
typedef struct lanes_sorting {
    const lanes_place *place;
    const float *weight;
    lanes_sorted *sorted;
    int32_t *count;
} lanes_sorting;

/* Pooling windows within one plane; padding columns are not stored. maxpool: rows of results, and
   of places, are `step` vectors apart. */
typedef struct lanes_pool {
    int64_t h, w, oh, ow, step;
    int64_t kh, kw, sh, sw, ph, pw;
    bool relu; /* after maxpool; places are LANES_NOWHERE where the result is 0 */
} lanes_pool;

/* The gradient of pooling windows of 2 x 2, and the places of their maxima. */
typedef struct lanes_pooled {
    const float *value;    /* (o, oh, ow) vectors */
    const uint8_t *place;  /* LANES_NOWHERE: counts as zero */
    int64_t oh, ow;        /* windows */
    int64_t rows, columns; /* of them, the first, beyond which the gradient is 0 */
    const float *zeros;    /* a row as wide as the planes of x, for rows outside the image */
} lanes_pooled;

/* Loops that depend on the number of lanes, compiled once per instruction set. A plane is `n`
   vectors. */
typedef struct lanes_loops {
    const char *name; /* of the instruction set */
    int lanes;
    double spot_cost; /* cost of listing a spot, in vector products */
    /* Convert (N, count) row-major to blocks; and back. */
    void (*pack)(float *to, const float *from, int64_t n, int64_t count);
    void (*unpack)(float *to, const float *from, int64_t n, int64_t count);
    /* y[o][u][v] = bias[o] + sum_{c,i,j} x[c][u + i][v + j] weight[o][c][i][j]; bias may be NULL */
    void (*correlate)(float *y, const float *x, const float *weight, const float *bias,
                      const lanes_window *window);
    /* sum[o][c][i][j] += sum_{u,v} dy[o][u][v] x[c][u + i][v + j], for each lane; and
       bias_sum[o] += sum_{u,v} dy[o][u][v]; for output channels [begin, end), where begin is a
       multiple of weight_channels, and end too unless it is the number of channels. */
    void (*correlate_weight)(float *sum, float *bias_sum, const float *dy, const float *x,
                             const lanes_window *window, int64_t begin, int64_t end);
    int64_t (*weight_channels)(const lanes_window *window);
    /* The same, for one input channel and taps side by side, from the gradient of pooling windows;
       any begin and end. NULL where lanes are not picked by masks. */
    void (*correlate_picked)(float *sum, float *bias_sum, const lanes_pooled *dy, const float *x,
                             const lanes_window *window, int64_t begin, int64_t end);
    /* Like correlate, for windows that lanes_winograd_pays accepts. wino_weight computes the
       transformed weight, (64, lanes_winograd_stride); `room`: scratch of wino_room floats. */
    void (*wino_weight)(float *to, const float *weight, const lanes_window *window);
    int64_t (*wino_room)(const lanes_window *window);
    /* Channels of a `part` of the window. */
    int64_t (*wino_part)(const lanes_window *window);
    void (*wino)(float *y, float *room, const float *x, const float *weight, const float *bias,
                 const lanes_window *window);
    /* to[i] = sum over the lanes of from[i], or += */
    void (*reduce)(float *to, const float *from, int64_t n, bool add);
    /* `place` (oh, ow) vectors of bytes: index of the maximum in its window; may be NULL */
    void (*maxpool)(float *y, uint8_t *place, const float *x, const lanes_pool *pool);
    void (*maxpool_gradient)(float *dx, const uint8_t *place, const float *dy,
                             const lanes_pool *pool);
    void (*relu)(float *y, const float *x, int64_t n);
    void (*relu_gradient)(float *dx, const float *y, const float *dy, int64_t n);
    void (*add)(float *y, const float *a, const float *b, int64_t n);
    /* mark (n, lanes): all ones where the upper 24 bits of the lane's random word are below
       `below`; kept (n, lanes) holds the same in bytes, for mark_again */
    void (*mark)(int32_t *mark, uint8_t *kept, const co_rng *rng, const uint32_t *item,
                 uint32_t below, int64_t n);
    void (*mark_again)(int32_t *mark, const uint8_t *kept, int64_t n);
    /* y (n, span) = drop (n) ? 0 : x * scale, per lane */
    void (*drop)(float *y, const float *x, const int32_t *drop, float scale, int64_t n,
                 int64_t span);
    /* The same with a mark for each of n elements; unaligned. */
    void (*drop_each)(float *y, const float *x, const int32_t *drop, float scale, int64_t n);
    /* per lane: sum x; sum (x - shift)^2; sum (x - shift) z */
    void (*sum)(float *sum, const float *x, int64_t n);
    void (*sum_squares)(float *sum, const float *x, float shift, int64_t n);
    void (*sum_products)(float *sum, const float *x, float shift, const float *z, int64_t n);
    /* y = a x + b z + c; z may be NULL */
    void (*combine)(float *y, const float *x, float a, const float *z, float b, float c, int64_t n);
    /* (c, h, w, lanes) -> samples (h, w, c), and back */
    void (*split)(float *to, const float *x, const lanes_sparse *sparse);
    void (*join)(float *x, const float *from, const lanes_sparse *sparse);
    /* Number of nonzero elements of n vectors. place: NULL, or LANES_NOWHERE counts as zero,
       too. */
    int64_t (*count)(const float *x, const uint8_t *place, int64_t n);
    /* List the spots of a block by channel; bias_sum[o] += sum of dy[o], per lane. place: NULL, or
       dy is of maxima at these places of their windows. */
    void (*list)(const lanes_spots *to, float *bias_sum, const float *dy, const uint8_t *place,
                 const lanes_sparse *sparse);
    /* sum[o][i][j, c] += sum over the spots of `samples` samples of value * the inputs it depends
       on */
    void (*sparse_weight)(float *sum, const float *x, const lanes_spots *spots, int64_t samples,
                          const lanes_sparse *sparse);
    /* For one sample: dx at the inputs of each spot += value * its channel's weight */
    void (*sparse_data)(float *dx, const lanes_spots *spots, const lanes_sorting *by,
                        const lanes_sparse *sparse, const lanes_squares *squares);
} lanes_loops;

KERNELS_DECLARE(lanes_loops, lanes_loops);
extern const lanes_loops lanes_loops_basic;

/* The loops this CPU can run, widest first, NULL-terminated; and the widest. */
const lanes_loops *const *lanes_find_all(void);
const lanes_loops *lanes_choose(void);

/* Squares of a convolution with kw taps in a row, for vectors of `lanes`; their places; a weight
   (o, c, kh, kw) as squares multiply it, of `ahead` + o * `channel` floats. */
lanes_squares lanes_describe_squares(const lanes_sparse *sparse, int64_t kw, int lanes);
void lanes_find_places(lanes_place *place, const lanes_sparse *s, const lanes_squares *q);
void lanes_spread_weight(float *to, const float *weight, const lanes_sparse *s, int64_t kw,
                         const lanes_squares *q);

/* Whether Winograd's algorithm applies to this window, and is faster. */
bool lanes_winograd_pays(const lanes_window *window);
/* Floats between points of a transformed weight. */
int64_t lanes_winograd_stride(const lanes_window *window);

#endif
