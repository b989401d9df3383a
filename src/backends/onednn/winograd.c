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

#define WINOGRAD_HALF_CHANNELS 64 /* with tensors of BF16, in and out */

/* Measured: 2 to 3 times as fast as the direct kernels where tiles are many and full. */
static bool winograd_pays(const co_call *call)
{
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const int64_t rows = (out[2] + WINOGRAD_TILE - 1) / WINOGRAD_TILE;
    const int64_t columns = (out[3] + WINOGRAD_TILE - 1) / WINOGRAD_TILE;
    const int64_t covered = rows * columns * WINOGRAD_TILE * WINOGRAD_TILE;

    return in[1] >= WINOGRAD_MIN_IN && in[0] * rows * columns >= WINOGRAD_MIN_TILES &&
           covered * 5 <= out[2] * out[3] * 9;
}

/* Measured: AVX-512's instructions for BF16 multiply twice as fast as those for floats, and still
   the direct kernels take 1.05 to 1.5 times as long. Those for AMX do not. */
static bool winograd_pays_half(const co_call *call)
{
    return !onednn_has(CO_ISA_AMX) && call->in[0]->shape.dim[1] >= WINOGRAD_HALF_CHANNELS &&
           call->out[0]->shape.dim[1] >= WINOGRAD_HALF_CHANNELS;
}

bool onednn_suits_winograd(const co_call *call)
{
    const co_conv2d_attr *a = call->attr;

    if (call->direct_convolution || a->groups != 1)
        return false;
    for (int i = 0; i < 2; i++)
        if (a->k[i] != 3 || a->s[i] != 1 || a->d[i] != 1)
            return false;
    return winograd_pays(call) && (call->in[0]->dtype == CO_F32 || winograd_pays_half(call));
}
