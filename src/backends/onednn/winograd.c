/*
 * winograd.c - which convolutions run by Winograd's algorithm F(4x4, 3x3) (Lavin & Gray,
 * arXiv:1509.09308), which multiplies a quarter as often, in fp32, and rounds a little differently.
 *
 * The rules are measured, and look at sizes and at the CPU's instructions alone: a choice by the
 * clock could give other bits in the next run. Must not know how a convolution is planned.
 */
#include "backends/onednn/onednn.h"

#define WINOGRAD_TILE 4 /* outputs at once, each way */
#define WINOGRAD_MIN_TILES                                                                         \
    32                     /* below, bringing the weights into its space costs more than it saves */
#define WINOGRAD_MIN_IN 16 /* channels; and whole vectors of them */

/* With tensors of BF16: against units that multiply twice as fast as those for floats. */
#define WINOGRAD_HALF_CHANNELS         64
#define WINOGRAD_HALF_TILES            128
#define WINOGRAD_HALF_LEAST_IMAGE      8 /* on smaller ones the direct kernels skip much padding */
#define WINOGRAD_HALF_WEIGHTS_CHANNELS 192 /* in and out together */
#define WINOGRAD_HALF_WEIGHTS_TILES    64
#define WINOGRAD_HALF_MANY_WEIGHTS     (128 * 256) /* in times out: any number of tiles will do */

typedef struct winograd_sizes {
    int64_t in, out; /* channels */
    int64_t height, width;
    int64_t tiles;
    bool full; /* all tiles */
} winograd_sizes;

static winograd_sizes winograd_measure(const co_call *call)
{
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const int64_t rows = (out[2] + WINOGRAD_TILE - 1) / WINOGRAD_TILE;
    const int64_t columns = (out[3] + WINOGRAD_TILE - 1) / WINOGRAD_TILE;

    return (winograd_sizes){.in = in[1],
                            .out = out[1],
                            .height = out[2],
                            .width = out[3],
                            .tiles = in[0] * rows * columns,
                            .full = out[2] % WINOGRAD_TILE == 0 && out[3] % WINOGRAD_TILE == 0};
}

/* Measured: 2 to 2.7 times as fast as the direct kernels where tiles are many and full. */
static bool winograd_pays(const winograd_sizes *s)
{
    const int64_t rows = (s->height + WINOGRAD_TILE - 1) / WINOGRAD_TILE;
    const int64_t columns = (s->width + WINOGRAD_TILE - 1) / WINOGRAD_TILE;
    const int64_t covered = rows * columns * WINOGRAD_TILE * WINOGRAD_TILE;

    return s->in >= WINOGRAD_MIN_IN && s->tiles >= WINOGRAD_MIN_TILES &&
           covered * 5 <= s->height * s->width * 9;
}

/* Measured with AVX-512's instructions for BF16: 280 to 330 GFLOP/s of the definition against 230
   to 255, in which changes of type count. Gradients of few weights are at 200 where tiles do not
   part evenly. AMX has no need of it. */
static bool winograd_pays_half(const winograd_sizes *s, onednn_pass pass)
{
    const int64_t least = s->in < s->out ? s->in : s->out;

    if (onednn_has_amx() || !s->full || least < WINOGRAD_HALF_CHANNELS)
        return false;
    if (pass != ONEDNN_WEIGHTS)
        return s->height >= WINOGRAD_HALF_LEAST_IMAGE && s->width >= WINOGRAD_HALF_LEAST_IMAGE &&
               s->tiles >= WINOGRAD_HALF_TILES;
    if (s->in * s->out >= WINOGRAD_HALF_MANY_WEIGHTS)
        return s->tiles >= WINOGRAD_HALF_WEIGHTS_TILES;
    return s->in + s->out >= WINOGRAD_HALF_WEIGHTS_CHANNELS && s->tiles % WINOGRAD_HALF_TILES == 0;
}

bool onednn_suits_winograd(const co_call *call, onednn_pass pass)
{
    const co_conv2d_attr *a = call->attr;
    const winograd_sizes sizes = winograd_measure(call);

    if (call->direct_convolution || a->groups != 1)
        return false;
    for (int i = 0; i < 2; i++)
        if (a->k[i] != 3 || a->s[i] != 1 || a->d[i] != 1)
            return false;
    return call->in[0]->dtype == CO_F32 ? winograd_pays(&sizes) : winograd_pays_half(&sizes, pass);
}
