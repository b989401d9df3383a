/*
 * dense.h - linear layers on rows of floats, with weights read where the flat store has them: what
 * its loops and the rest of it share.
 *
 * oneDNN brings the weights into blocks, and their gradients back, at every step: for few samples
 * that takes longer than the products. Here
 *
 *   y = x w' + b     sums over neighbouring elements of rows of x and of w: nothing is turned
 *   dw = dy' x       and dx = dy w: sums of rows of x, of w, each times a number of dy
 */
#ifndef CO_BACKENDS_ONEDNN_DENSE_H
#define CO_BACKENDS_ONEDNN_DENSE_H

#include "backends/onednn/onednn.h"

/* A matrix of floats; `step` from one row to the next. */
typedef struct dense_rows {
    float *at;
    int64_t n, step;
} dense_rows;

/* Compiled once for each instruction set. A panel is (rows, width): `width` neighbouring columns of
   a matrix, zeros where it has none. */
typedef struct dense_loops {
    const char *name;
    int width; /* columns of a panel: two vectors */
    int rows;  /* that add_up makes at once, at most */
    /* y[n][o] = bias[o] + sum over k of x[n][k] w[o][k], or += that without bias, for all rows of x
       and w. bias may be NULL. */
    void (*multiply)(const dense_rows *y, const dense_rows *x, const dense_rows *w,
                     const float *bias, int64_t k, bool add);
    /* `columns` columns from `from` on to a panel. */
    void (*pack)(float *panel, const dense_rows *from, int64_t columns);
    /* to[i][j] = sum over l of number[l][i] panel[l][j], or +=; number (l, rows of `to`) */
    void (*add_up)(const dense_rows *to, int64_t columns, const float *number, const float *panel,
                   int64_t l, bool add);
} dense_loops;

#ifdef CO_ONEDNN_X86
extern const dense_loops dense_loops_avx2, dense_loops_avx512;
#endif

/* A part of linear's self. */
typedef struct dense {
    const dense_loops *loops;               /* NULL: oneDNN's own kernels run the call */
    bool forward;                           /* whether they run its forward pass, too */
    onednn_operand src, back_src, grad_out; /* plain */
    int threads;                            /* that there is room for */
    size_t forward_at, backward_at;         /* in scratch */
} dense;

/* --- dense.c --- */
/* After onednn_begin: find loops for the call that this machine can run, if any; whether they suit
   the forward pass, too. */
bool dense_choose(dense *self, const co_call *call);
/* Whether a call with tensors of BF16 is faster by such loops, in floats. */
bool dense_beats_half(const co_call *call);
co_status dense_plan(dense *self, co_call *call, onednn_self *base);
co_status dense_plan_backward(dense *self, co_call *call, onednn_self *base);
/* Behind the programs that bring their operands to rows. */
void dense_forward(const dense *self, const co_call *call);
void dense_backward(const dense *self, const co_call *call, bool accumulate);

#endif
