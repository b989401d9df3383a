/*
 * wino.h - 3x3 convolution of stride 1 by the loops of kernels/winograd43.
 */
#ifndef CO_BACKENDS_ONEDNN_WINO_H
#define CO_BACKENDS_ONEDNN_WINO_H

#include "backends/onednn/onednn.h"
#include "kernels/winograd43/winograd43.h"

/* How a product's work is cut to fit the caches, and its scratch memory, offsets in floats. */
typedef struct winograd43_cut {
    int64_t tiles, chunk;              /* in all, and at a time */
    int64_t blocks, group;             /* of output channels, in all and at a time */
    int64_t v_apart, m_apart, u_apart; /* floats between points; M: also of dy's tiles */
    int64_t v, m, u, work;             /* offsets */
    int64_t floats;
} winograd43_cut;

/* A part of conv2d's self. */
typedef struct wino {
    const winograd43_loops *loops; /* NULL: oneDNN's own kernels run the call */
    int64_t in_blocks, out_blocks;
    winograd43_grid patches, outputs;         /* of the forward pass: on the input, on the output */
    winograd43_grid back_patches, back_tiles; /* of the inputs' gradient: on dy, on dx */
    winograd43_cut forward, back, weight;
    onednn_operand src, back_src, grad_out; /* blocked */
    size_t forward_at, backward_at;         /* in scratch */
} wino;

/* --- wino.c --- */
/* Whether it knows how, and this machine. */
bool winograd43_supports(const co_call *call);
co_status winograd43_plan(wino *self, co_call *call, onednn_self *base);
co_status winograd43_plan_backward(wino *self, co_call *call, onednn_self *base);
co_status winograd43_forward(const wino *self, const co_call *call);
co_status winograd43_backward(const wino *self, const co_call *call, bool accumulate);

#endif
