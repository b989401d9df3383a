/*
 * sample_lanes_winograd.c - decides when to use Winograd's algorithm.
 *
 * It needs a sixth of the products of a 5 x 5 kernel, but transforms the input and the output.
 * Whether that pays depends on the number of channels, as each transform is shared by all channels
 * of the other side, and on how much of the tiles at the right and bottom edge is used. With one
 * input channel, tiles are rows.
 */
#include "kernels/sample_lanes/sample_lanes.h"

/* Vector operations per tile: per pair of channels, per input channel, per output channel. */
#define WINO_COST_PAIR 64
#define WINO_COST_IN   420
#define WINO_COST_OUT  230
/* Per row of a tile, with one input channel: per output channel, and for the input. */
#define WINO_COST_LINE    75
#define WINO_COST_LINE_IN 60
/* Per output element with direct convolution. */
#define WINO_TAPS 25

static int64_t wino_tiles(int64_t n)
{
    return (n + 3) / 4;
}

bool lanes_winograd_pays(const lanes_window *window)
{
    const lanes_window *s = window;
    const int64_t across = wino_tiles(s->ow), direct = s->oh * s->ow * WINO_TAPS * s->c * s->o;

    if (s->kh != 5 || s->kw != 5 || s->step_h != 1 || s->step_w != 1)
        return false;
    if (s->c == 1)
        return across * s->oh * (WINO_COST_LINE * s->o + WINO_COST_LINE_IN) < direct;
    return across * wino_tiles(s->oh) *
               (WINO_COST_PAIR * s->c * s->o + WINO_COST_IN * s->c + WINO_COST_OUT * s->o) <
           direct;
}

int64_t lanes_winograd_stride(const lanes_window *window)
{
    return (window->c * window->o + LANES_MOST - 1) / LANES_MOST * LANES_MOST;
}
