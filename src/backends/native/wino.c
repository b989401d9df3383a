/*
 * wino.c - which convolutions Winograd's algorithm is for.
 *
 * It makes a sixth of the products of a 5 x 5 kernel, and changes the input's and the output's form
 * instead. What that is worth depends on the channels, as each form is made once for all channels
 * on the other side, and on how much of the tiles at the right and lower edge is used.
 */
#include "backends/native/native.h"

/* Vector operations on a tile: of one pair of channels, of an input's channel, of an output's. */
#define WINO_COST_PAIR 64
#define WINO_COST_IN   500
#define WINO_COST_OUT  350
/* The same for an output's by its definition. */
#define WINO_TAPS 25

static int64_t wino_tiles(int64_t n)
{
    return (n + 3) / 4;
}

bool native_wino_pays(const native_window *window)
{
    const int64_t tiles = wino_tiles(window->oh) * wino_tiles(window->ow);

    if (window->kh != 5 || window->kw != 5 || window->step_h != 1 || window->step_w != 1)
        return false;
    return tiles * (WINO_COST_PAIR * window->c * window->o + WINO_COST_IN * window->c +
                    WINO_COST_OUT * window->o) <
           window->oh * window->ow * WINO_TAPS * window->c * window->o;
}

int64_t native_wino_stride(const native_window *window)
{
    return (window->c * window->o + NATIVE_MAX_LANES - 1) / NATIVE_MAX_LANES * NATIVE_MAX_LANES;
}
