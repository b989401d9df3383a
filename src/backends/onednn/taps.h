/*
 * taps.h - convolution of small images by the loops of kernels/small_conv.
 */
#ifndef CO_BACKENDS_ONEDNN_TAPS_H
#define CO_BACKENDS_ONEDNN_TAPS_H

#include "backends/onednn/onednn.h"
#include "kernels/small_conv/small_conv.h"

/* Pairs by what they give: those of k are pair[end[k - 1]] to pair[end[k] - 1]. */
typedef struct small_conv_list {
    int32_t n;
    int32_t *end;          /* owned; (n) */
    small_conv_pair *pair; /* owned */
} small_conv_list;

/* --- taps.c: the life of a convolution that small_conv_choose has loops for --- */
typedef struct taps {
    const small_conv_loops *loops; /* NULL: oneDNN runs the call */
    small_conv_image in, out;
    int64_t in_pixels, out_pixels;
    small_conv_weight weight;
    int64_t *tap;                            /* owned; weight's arrays */
    small_conv_list forward, data, gradient; /* by output pixel, by input pixel, by tap */
    int64_t panel, panel_back;               /* floats of a block of packed weights */
    size_t packed_at, gradient_at;           /* in scratch: forward, backward */
    onednn_operand grad_out;                 /* as the output lies */
} taps;

/* The loops that run the call faster than oneDNN does, or NULL. */
const small_conv_loops *small_conv_choose(const co_call *call);
/* After onednn_begin, where there are such loops. */
co_status small_conv_plan(taps *self, co_call *call);
co_status small_conv_plan_backward(taps *self, co_call *call);
/* Behind the programs that bring their operands into the layout. */
void small_conv_forward(const taps *self, co_call *call);
void small_conv_backward(const taps *self, co_call *call, const co_run *run);
void small_conv_fini(taps *self);

#endif
