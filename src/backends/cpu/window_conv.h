/* window_conv.h - convolution of few channels by tiles: for window_conv.c, and for tests that have
 * its loops in plain C. */
#ifndef CO_BACKENDS_CPU_WINDOW_CONV_H
#define CO_BACKENDS_CPU_WINDOW_CONV_H

#include "backends/cpu/direct_conv.h"

typedef struct window_conv {
    direct direct;                     /* first: its functions take it for their own self */
    int64_t channels, taps, width;     /* of the image; rows and columns of the kernel */
    int64_t rows, columns, pairs;      /* of results; pairs of columns */
    int64_t stride[2], padding[2];     /* of rows, columns */
    int64_t blocks;                    /* of results */
    int64_t forward_rows, weight_rows; /* results' rows in a piece: forward, of the gradient */
    int64_t line;                      /* numbers of a row of the image with its padding */
    size_t windows_at, room_at, packed_at, bias_at; /* in scratch, forward: the weight, as one of
                                                       windows and packed */
    size_t gradient_at, gradient_windows_at, gradient_bias_at, pairs_at, lines_at; /* backward */
} window_conv;

/* What a kernel has that is such a convolution, with loops that have `lines`; see direct_conv.h. */
bool window_conv_fits(const co_call *call, const char **why);
co_status window_conv_plan_with(co_call *call, const direct_conv_loops *loops);
co_status window_conv_plan_backward(co_call *call);
co_status window_conv_forward(co_call *call, const co_run *run);
co_status window_conv_backward(co_call *call, const co_run *run);

#endif
