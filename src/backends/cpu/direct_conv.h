/*
 * direct_conv.h - how a convolution by its definition is laid out: which copies of images it reads,
 * which steps its sums have, and how results are cut. For direct_conv.c, which runs it.
 */
#ifndef CO_BACKENDS_CPU_DIRECT_CONV_H
#define CO_BACKENDS_CPU_DIRECT_CONV_H

#include "backends/cpu/cpu.h"
#include "kernels/direct_conv/direct_conv.h"

/* The image that sums read: the tensor itself, or a copy with padding. Of pairs of pixels, and for
   tiles, there is one for each phase of a stride: the rows that leave the same rest when they are
   divided by it. Sizes are in words. */
typedef struct direct_image {
    bool copied;
    bool pairs;            /* the copy is of pairs of pixels, and there is one for each column of
                              the kernel */
    int64_t h, w;          /* of the tensor */
    int64_t planes;        /* blocks of channels, channels, or pairs of channels */
    int64_t channels;      /* of few: those of the tensor */
    int64_t samples;       /* of few: that share a copy, 1 or 2 */
    int64_t numbers;       /* of a pixel in the tensor */
    int64_t width;         /* of a pixel, or a pair */
    int64_t phases[2];     /* how many of rows and of columns */
    int64_t phase_step[2]; /* from one to the next */
    int64_t step[2];       /* of the copy: 1, or the stride of phases */
    int64_t first[2];      /* where phase 0 begins in the tensor: negative in padding */
    int64_t rows, columns; /* of a copy, or of the tensor */
    int64_t row, plane, sample; /* from one to the next */
    int64_t after;              /* zero pairs after the copies of a plane */
} direct_image;

/* Results that are summed from the same taps: all of a forward pass; of the gradient of the input,
   those of one phase. */
typedef struct direct_part {
    direct_conv_sum sum;
    direct_conv_area area;
    int64_t y_at, w_at; /* the first result, and its weights */
} direct_part;

/* One of the three passes: forward, gradient of the input, gradient of the weight. The last has dy
   in the place of results. */
typedef struct direct_pass {
    direct_image image;
    direct_part *part; /* owned; (parts) */
    int64_t *at;       /* owned; (steps) of all parts */
    int64_t *tap;      /* owned; (steps), of the gradient of the input: block of dy * taps + tap */
    int64_t parts, steps;
    int64_t blocks;   /* of results */
    int64_t y_sample; /* numbers, or words of dy */
    int64_t to[2];    /* rows and columns of dy */
    int64_t group;    /* samples of which there are copies at once */
} direct_pass;

/* Fill `out`; on failure, too, direct_pass_free frees what it holds. */
co_status direct_plan_forward(direct_pass *out, const co_call *call,
                              const direct_conv_loops *loops);
co_status direct_plan_data(direct_pass *out, const co_call *call, const direct_conv_loops *loops);
/* The gradient of the weight in bf16, from pairs of pixels, or with few channels of samples; else
   it reads what forward does. */
co_status direct_plan_pairs(direct_pass *out, const co_call *call, const direct_conv_loops *loops);
void direct_pass_free(direct_pass *pass);

/* Whether the input has so few channels that it is read in the plain layout. */
bool direct_is_few(const co_call *call, const direct_conv_loops *loops);

/* A part of a rectangle, and what it is from its beginning. */
typedef struct direct_piece {
    direct_conv_area area;
    int64_t x_at, y_at;
} direct_piece;

/* How many pieces of at most about `most` pixels a rectangle has: of its rows, or of its only
   one. */
int64_t direct_count_pieces(const direct_conv_area *area, int64_t most);
direct_piece direct_find_piece(const direct_conv_area *area, int64_t pieces, int64_t i);

static inline int64_t direct_divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static inline int64_t direct_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- a call --- */

/* How copies of x and dy meet, where the loops have `lines`: see direct_conv_lines.c. */
typedef struct direct_lines {
    bool holds_x;       /* else dy */
    int64_t samples;    /* of which there are copies at once */
    int64_t held, come; /* blocks of channels, too */
} direct_lines;

typedef struct direct {
    const direct_conv_loops *loops;
    direct_pass forward, data, pairs;
    cpu_operand src, back_src, grad_out;
    direct_conv_weight weight;
    direct_lines lines;
    int64_t panel; /* floats of a block of weights */
    bool keeps;    /* packed weights are in the workspace, for backward, too */
    size_t weight_at, room_at, bias_at, copy_at;             /* in scratch, forward */
    size_t gradient_at, back_copy_at, dy_at;                 /* backward: the weight's */
    size_t packed_at, back_room_at, turned_at, grad_copy_at; /* and the input's */
} direct;

/* The widest loops for tensors of this type, without AMX. */
const direct_conv_loops *direct_find_loops(co_dtype dtype);
/* What a kernel has that is a convolution by its definition: with loops of its own, and the rest of
   co_kernel. Its self is a `direct`. */
co_status direct_plan_with(co_call *call, const direct_conv_loops *loops);
co_status direct_plan_backward(co_call *call);
co_status direct_forward(co_call *call, const co_run *run);
co_status direct_backward(co_call *call, const co_run *run);
void direct_fini(co_call *call);
/* The pass of the weight's gradient, which reads pairs of pixels or what forward has read. */
const direct_pass *direct_weight_pass(const direct *self);
/* What a pass reads of samples `first` to `first` + `n`: the tensor, or copies at `to`, where those
   of the samples before have been. */
const float *direct_bring(const direct *self, const direct_image *image, float *to, const void *x,
                          int64_t first, int64_t n, int threads);
/* Operands of a pass that gives images. */
typedef struct direct_run {
    const direct *self;
    const direct_pass *pass;
    const void *x;
    const float *weight, *bias;
    char *y;
    float *copies;
    int64_t n; /* samples */
    int threads;
} direct_run;

/* The bias at `to`, with zeros up to whole blocks of results; NULL: there is none. */
const float *direct_bring_bias(const direct *self, const co_call *call, float *to);
/* All results of the pass. */
void direct_multiply(const direct_run *run);
/* The gradients of weight and bias. */
void direct_find_weight(const direct *self, const co_call *call, const co_run *run, const char *dy,
                        int threads);
/* Where the loops have `lines`: plan, words of the copies of x or dy, and the sums, in blocks. */
void direct_plan_lines(direct *self, const co_call *call);
int64_t direct_lines_size(const direct *self, bool x);
void direct_sum_lines(const direct *self, const co_call *call, float *dw, const char *dy,
                      int threads);
/* Copies of plane `i`, a block of a sample, of the tensor x; and of dy as lines, with those of the
   following samples. */
void direct_copy_plane(const direct *self, const direct_image *image, float *to, const void *x,
                       int64_t i);
void direct_copy_lines(const direct *self, float *to, const void *dy, int64_t i, int64_t n);
/* That of the bias; `sum` has room for all blocks of results. */
void direct_find_bias(const direct *self, const co_call *call, const co_run *run, const char *dy,
                      float *sum, int threads);

static inline int64_t direct_square(const direct *self)
{
    return (int64_t)self->loops->lanes * self->loops->lanes;
}

/* Whether products are of pairs of BF16. */
static inline bool direct_has_pairs(const direct_conv_loops *loops)
{
    return loops->words < loops->lanes;
}

/* Whether tensors are of BF16 and products of floats, so that all that is read is copied. */
static inline bool direct_widens(const direct_conv_loops *loops)
{
    return loops->cell < sizeof(float) && !direct_has_pairs(loops);
}

/* Words of so many floats of packed weights. */
static inline int64_t direct_words(const direct *self, int64_t floats)
{
    return direct_has_pairs(self->loops) ? floats / 2 : floats;
}

#define DIRECT_PAST_BYTES ((size_t)8 << 20)

/* Whether so many numbers of results leave none in a cache for when they are read: then they need
   not be read into one to be written. */
static inline bool direct_goes_past(const direct *self, int64_t numbers)
{
    return (size_t)numbers * self->loops->cell >= DIRECT_PAST_BYTES;
}

static inline float *direct_scratch(const co_call *call, size_t at)
{
    return (float *)(void *)((char *)call->scratch + at);
}

/* How many of the blocks from `block` on are computed at once. */
static inline int direct_columns(int64_t blocks, int64_t block)
{
    return (int)direct_least(blocks - block, DIRECT_CONV_TOGETHER);
}

#endif
