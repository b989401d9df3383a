/*
 * reorder.h - images from one layout to another: channels in blocks, channels last, row-major. Its
 * loops move elements of 2 or 4 bytes, whatever they are.
 */
#ifndef CO_KERNELS_REORDER_H
#define CO_KERNELS_REORDER_H

#include <stdint.h>

#include "kernels/levels.h"

/* Element (n, c, p), p = place in the plane, is at
   n * sample + c / block * group + c % block + p * pixel. Channels that only pad a block are 0. */
typedef struct reorder_places {
    int64_t c, plane;
    int64_t block, sample, group, pixel;
} reorder_places;

/* Row-major: rows of channels, `block` 1. */
reorder_places reorder_plain(int64_t c, int64_t plane);
reorder_places reorder_blocks(int64_t c, int64_t plane, int64_t block);
reorder_places reorder_last(int64_t c, int64_t plane);

/* One sample, compiled once for each instruction set. */
typedef struct reorder_loops {
    void (*floats)(void *to, const reorder_places *tos, const void *from,
                   const reorder_places *froms);
    void (*halves)(void *to, const reorder_places *tos, const void *from,
                   const reorder_places *froms);
} reorder_loops;

extern const reorder_loops reorder_loops_basic;
KERNELS_DECLARE(reorder_loops, reorder_loops);

/* The widest that this process may use. */
const reorder_loops *reorder_choose(void);

#endif
