/* conv2d.h - what both passes of a convolution with few channels share. */
#ifndef CO_BACKENDS_CPU_SAMPLE_LANES_CONV2D_H
#define CO_BACKENDS_CPU_SAMPLE_LANES_CONV2D_H

#include "backends/cpu/sample_lanes/kernels.h"

typedef struct lanes_conv2d {
    lanes_window forward, data;
    lanes_window needed; /* of forward's outputs, those that anything read depends on */
    int threads;
    /* Offsets in scratch during backward, after dy in blocks. In forward a transformed weight is
       at 0. */
    size_t mirrored, sum, bias_sum, data_form;
    /* Offsets in a thread's scratch, where padded planes of x, or in backward of dy, are at 0: in
       forward wino_room and the rows of a band, in backward padded x, zeros where `picks`, dy of a
       block, wino_room. */
    size_t work, rows, x_pad, zeros, full, data_work;
    sample_lanes_sparse sparse;
    /* With a fused max pooling: places of the maxima are in the workspace. The weight's gradient
       picks its inputs by them where that is possible. */
    bool pooled, picks;
    lanes_pool pool;
    co_extent read; /* windows that are read */
    size_t place;   /* in the workspace */
    int64_t band;   /* rows of windows per pass */
    /* Use Winograd's algorithm, which needs a transformed weight and wino_room. */
    bool wino, wino_data;
} lanes_conv2d;

size_t lanes_conv2d_aligned(size_t bytes);
/* Bytes of a block with padding columns; 0 without padding. */
size_t lanes_conv2d_pad_bytes(const lanes_window *s);
/* A block with padding columns: x itself if there are none, else a copy in `room`. */
const float *lanes_conv2d_pad(float *room, const float *x, const lanes_window *s);
/* Bytes of a transformed weight; and of wino_room. */
size_t lanes_conv2d_form_bytes(const lanes_window *s);
size_t lanes_conv2d_work_bytes(const lanes_window *s);
/* Of `rows` rows of a block's output. */
size_t lanes_conv2d_block_bytes(const lanes_window *s, int64_t rows);

/* --- conv2d_backward.c --- */
co_status lanes_conv2d_plan_backward(co_call *call);
co_status lanes_conv2d_backward(co_call *call, const co_run *run);

#endif
