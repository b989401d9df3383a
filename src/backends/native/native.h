/*
 * native.h - Cohort's own kernels for small networks.
 *
 * A network with few channels leaves most of a vector register empty when channels are its lanes,
 * as they are in oneDNN's blocked layouts. Here the lanes are samples: every channel count and
 * every image width fills them, and an op needs no shuffle and no remainder loop.
 *
 * The layout of a tensor (N, ...): blocks of `lanes` samples; within a block (..., lanes). The
 * lanes behind the last sample hold finite numbers in values, and zeros in gradients.
 */
#ifndef CO_BACKENDS_NATIVE_NATIVE_H
#define CO_BACKENDS_NATIVE_NATIVE_H

#include "backends/backends.h"
#include "core/rng.h"
#include "ops/ops.h"

#define NATIVE_MAX_LANES   16
#define NATIVE_WINO_PLACES 64  /* of a tile of Winograd's algorithm */
#define NATIVE_WINO_ROWS   4   /* of its output */
#define NATIVE_NOWHERE     255 /* the place of a maximum whose gradient ReLU stops */

/* A correlation of stride 1 within one block. The planes that it reads have `pad_w` columns of
   zeros on both sides; rows outside the image are left out. */
typedef struct native_window {
    int64_t c, h, w;        /* read: channels, rows, columns without those of padding */
    int64_t o, oh, ow;      /* written */
    int64_t kh, kw;         /* taps */
    int64_t step_h, step_w; /* from tap to tap */
    int64_t pad_h, pad_w;
} native_window;

/* The gradients of a convolution without dilation, by the elements of the output's gradient that
   are not zero: spots. A sample is (h, w, c) with padding, and a vector of room behind, as vectors
   reach beyond the end of a row. */
typedef struct native_sparse {
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
} native_sparse;

/* A gradient in blocks; where its maxima were, or NULL if it is not of maxima. */
typedef struct native_grad {
    const float *value;
    const uint8_t *place;
} native_grad;

/* (samples, room): values, and the first element that each saw of its sample; (samples, o): behind
   each channel's last. */
typedef struct native_spots {
    float *value;
    int32_t *at, *end;
} native_spots;

/* Pooling windows within one plane, without padding columns in memory. */
typedef struct native_pool {
    int64_t h, w, oh, ow;
    int64_t kh, kw, sh, sw, ph, pw;
} native_pool;

/* The loops that depend on the number of lanes, compiled once for each instruction set. A plane is
   `n` vectors. */
typedef struct native_lanes {
    const char *name; /* of the instruction set */
    int lanes;
    double spot_cost; /* to list a spot, in products of vectors */
    /* (N, count) row-major <-> blocks */
    void (*pack)(float *to, const float *from, int64_t n, int64_t count);
    void (*unpack)(float *to, const float *from, int64_t n, int64_t count);
    /* y[o][u][v] = bias[o] + sum_{c,i,j} x[c][u + i][v + j] weight[o][c][i][j]; bias may be NULL */
    void (*correlate)(float *y, const float *x, const float *weight, const float *bias,
                      const native_window *window);
    /* sum[o][c][i][j] += sum_{u,v} dy[o][u][v] x[c][u + i][v + j], for each lane; and
       bias_sum[o] += sum_{u,v} dy[o][u][v] */
    void (*correlate_weight)(float *sum, float *bias_sum, const float *dy, const float *x,
                             const native_window *window);
    /* The same as correlate, for windows that native_wino_pays takes: first the weight's form
       (64, stride of native_wino_stride); `room`: wino_room floats. */
    void (*wino_weight)(float *to, const float *weight, const native_window *window);
    int64_t (*wino_room)(const native_window *window);
    void (*wino)(float *y, float *room, const float *x, const float *weight, const float *bias,
                 const native_window *window);
    /* to[i] = sum over the lanes of from[i], or += */
    void (*reduce)(float *to, const float *from, int64_t n, bool add);
    /* `place` (oh, ow) vectors of bytes: which tap of its window was largest; may be NULL */
    void (*maxpool)(float *y, uint8_t *place, const float *x, const native_pool *pool);
    void (*maxpool_gradient)(float *dx, const uint8_t *place, const float *dy,
                             const native_pool *pool);
    /* ReLU behind maxpool: n vectors, and NATIVE_NOWHERE where it is zero; place may be NULL */
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
    void (*split)(float *to, const float *x, const native_sparse *sparse);
    void (*join)(float *x, const float *from, const native_sparse *sparse);
    /* Elements of n vectors that are not zero; place: NULL, or NATIVE_NOWHERE is zero, too. */
    int64_t (*count)(const float *x, const uint8_t *place, int64_t n);
    /* The spots of a block, by channel; bias_sum[o] += sum of dy[o], for each lane. place: NULL,
       or dy is of maxima, and each stands there in its window. */
    void (*list)(const native_spots *to, float *bias_sum, const float *dy, const uint8_t *place,
                 const native_sparse *sparse);
    /* sum[o][i][j, c] += sum over the spots of `samples` samples of value * what it saw */
    void (*sparse_weight)(float *sum, const float *x, const native_spots *spots, int64_t samples,
                          const native_sparse *sparse);
    /* dx of one sample += value * weight[o][i][j, c] where each spot looked */
    void (*sparse_data)(float *dx, const float *weight, const native_spots *spots,
                        const native_sparse *sparse);
} native_lanes;

#ifdef CO_NATIVE_X86
extern const native_lanes native_lanes_avx2, native_lanes_avx512;
#endif
extern const native_lanes native_lanes_basic;

/* --- layout.c --- */
/* The loops that this machine can run, widest first, ended by NULL; and the widest. */
const native_lanes *const *native_find_all(void);
const native_lanes *native_choose(void);
/* Elements of one sample, and blocks of the batch. */
int64_t native_count(const co_tensor *tensor);
int64_t native_blocks(const co_tensor *tensor);
/* Bytes of the tensor in this backend's layout. */
size_t native_bytes(const co_tensor *tensor);
/* Whether the tensor lies in this backend's layout. */
bool native_is_blocked(const co_tensor *tensor);
/* Give the tensor this backend's layout. */
void native_block(co_tensor *tensor);
/* `supports` of kernels that keep the layout of their first input and do not enter it. */
bool native_supports_blocked(const co_call *call, const char **why);
/* The tensor's values in blocks: its own memory, or packed into `room` if it is plain. */
const float *native_read(const co_tensor *tensor, float *room);
/* Room that native_read needs for the tensor. */
size_t native_room(const co_tensor *tensor);
/* Zero the lanes behind the last sample. */
void native_clear_rest(const co_tensor *tensor);
/* A kernel whose output lies as its input, and its gradient, too: plan and plan_backward. */
co_status native_plan_alike(co_call *call);
co_status native_plan_backward_alike(co_call *call);
/* Gradient of out[0], in blocks. */
const float *native_grad_out(const co_call *call);

/* --- wino.c --- */
/* Whether Winograd's algorithm is for this window, and faster. */
bool native_wino_pays(const native_window *window);
/* Floats from one place of a weight's form to the next. */
int64_t native_wino_stride(const native_window *window);

/* --- sparse.c --- */
/* `pool`: what follows the convolution, or NULL. */
void native_sparse_describe(native_sparse *out, const co_call *call, const native_pool *pool);
/* Scratch for the backward pass of a call whose spots may be few; 0: it cannot use them. */
size_t native_sparse_room(const native_sparse *sparse, const co_call *call);
/* Whether products with spots cost less than products with all of dy, for this dy. */
bool native_sparse_pays(const native_sparse *sparse, const co_call *call, const native_grad *dy);
/* x, grad: in blocks. */
void native_sparse_backward(const native_sparse *sparse, co_call *call, const float *x,
                            const native_grad *grad, char *room, const co_run *run);

/* --- maxpool.c --- */
/* Windows of a pooling from planes of (h, w) to planes of (oh, ow). */
native_pool native_describe_pool(const co_pool_attr *attr, const int64_t *in, const int64_t *out);

extern const co_kernel co_native_conv2d, co_native_maxpool, co_native_relu, co_native_add,
    co_native_flatten, co_native_batchnorm, co_native_dropout, co_native_dropout2d,
    co_native_unpack;

#endif
