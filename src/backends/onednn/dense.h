/*
 * dense.h - linear layers by the loops of kernels/gemm, with weights read where the flat store has
 * them.
 *
 * oneDNN brings the weights into blocks, and their gradients back, at every step: for few samples
 * that takes longer than the products.
 */
#ifndef CO_BACKENDS_ONEDNN_DENSE_H
#define CO_BACKENDS_ONEDNN_DENSE_H

#include "backends/onednn/onednn.h"
#include "kernels/gemm/gemm.h"

/* A part of linear's self. */
typedef struct dense {
    const gemm_loops *loops;                /* NULL: oneDNN's own kernels run the call */
    bool forward;                           /* whether they run its forward pass, too */
    onednn_operand src, back_src, grad_out; /* plain */
    int threads;                            /* that there is room for */
    size_t forward_at, backward_at;         /* in scratch */
} dense;

/* --- dense.c --- */
/* After onednn_begin: find loops for the call that this machine can run, if any; whether they suit
   the forward pass, too. */
bool gemm_choose(dense *self, const co_call *call);
/* Whether a call with tensors of BF16 is faster by such loops, in floats. */
bool gemm_beats_half(const co_call *call);
co_status gemm_plan(dense *self, co_call *call, onednn_self *base);
co_status gemm_plan_backward(dense *self, co_call *call, onednn_self *base);
/* Behind the programs that bring their operands to rows. */
void gemm_forward(const dense *self, const co_call *call);
void gemm_backward(const dense *self, const co_call *call, bool accumulate);

#endif
