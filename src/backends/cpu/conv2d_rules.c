/*
 * conv2d_rules.c - properties of a convolution that kernels of several backends need: which taps
 * ever meet the image, and whether Winograd's F(4x4, 3x3) or F(4x4, 5x5) (Lavin & Gray,
 * arXiv:1509.09308), in fp32, with a quarter or a sixth of the multiplications and slightly
 * different rounding, is worthwhile.
 *
 * The rules come from measurements, and depend only on sizes and the CPU's instructions: timing at
 * run time could choose differently, and give other bits, in the next run.
 */
#include "backends/cpu/conv2d_rules.h"

#include "core/isa.h"
#include "ops/ops.h"

#define WINOGRAD_TILE      4  /* outputs per tile, in each direction */
#define WINOGRAD_MIN_TILES 32 /* below this, transforming the weights costs more than it saves */
#define WINOGRAD_MIN_IN    16 /* input channels */
#define DIRECT_MIN_PIXELS  16 /* of a result */
/* In bf16: two blocks of channels, pixels of a result, and of all, which pay for packed weights. */
#define DIRECT_HALF_CHANNELS 32
#define DIRECT_HALF_IMAGE    49
#define DIRECT_HALF_PIXELS   128

bool conv2d_trim(conv2d_reach *out, const co_call *call, int i)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t in = call->in[0]->shape.dim[2 + i], last = call->out[0]->shape.dim[2 + i] - 1;
    const int64_t missed = a->p[i] - last * a->s[i], reach = (in - 1 + a->p[i]) / a->d[i] + 1;
    const int64_t end = reach < a->k[i] ? reach : a->k[i];
    const int64_t before = missed > 0 ? (missed + a->d[i] - 1) / a->d[i] : 0;
    const int64_t padding = a->p[i] - before * a->d[i];
    const int64_t after = last * a->s[i] + (end - before - 1) * a->d[i] + 1 - in - padding;

    *out = (conv2d_reach){0, a->k[i], a->p[i], a->p[i]};
    if (padding < 0 || after < 0 || end - before == a->k[i])
        return false;
    *out = (conv2d_reach){before, end - before, padding, after};
    return true;
}

bool conv2d_is_trimmed(const co_call *call)
{
    conv2d_reach reach;

    return conv2d_trim(&reach, call, 0) || conv2d_trim(&reach, call, 1);
}

/* Measured: 2 to 3 times as fast as direct kernels if tiles are many and full. */
static bool conv2d_fills_tiles(const co_call *call)
{
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const int64_t rows = (out[2] + WINOGRAD_TILE - 1) / WINOGRAD_TILE;
    const int64_t columns = (out[3] + WINOGRAD_TILE - 1) / WINOGRAD_TILE;
    const int64_t covered = rows * columns * WINOGRAD_TILE * WINOGRAD_TILE;

    return in[1] >= WINOGRAD_MIN_IN && in[0] * rows * columns >= WINOGRAD_MIN_TILES &&
           covered * 5 <= out[2] * out[3] * 9;
}

bool conv2d_suits_winograd(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;

    *why = "the config wants direct convolutions";
    if (call->direct_convolution)
        return false;
    *why = "its kernel is not 3x3 or 5x5 with stride, dilation and groups of 1";
    if (a->groups != 1 || (a->k[0] != 3 && a->k[0] != 5))
        return false;
    for (int i = 0; i < 2; i++)
        if (a->k[i] != a->k[0] || a->s[i] != 1 || a->d[i] != 1)
            return false;
    *why = "some of its taps only ever meet padding";
    if (conv2d_is_trimmed(call))
        return false;
    *why = "its channels or tiles of 4x4 outputs are too few, or tiles too empty";
    return conv2d_fills_tiles(call);
}

/* Measured with products of BF16 and without tiles: forward 0.8 to 1.09 of oneDNN's time, backward
   0.73 to 1.07. For 4x4 results it is 1.1 to 1.36 of that of the kernel for small images. */
static bool conv2d_suits_direct_half(const co_call *call, const char **why)
{
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;

    *why = "its channels are few";
    if (in[1] < DIRECT_HALF_CHANNELS || out[1] < DIRECT_HALF_CHANNELS)
        return false;
    *why = "its results are small, or few for its weights";
    return out[2] * out[3] >= DIRECT_HALF_IMAGE && out[0] * out[2] * out[3] >= DIRECT_HALF_PIXELS;
}

/* In fp32 measured on a CPU that has no more than AVX2: 0.85 to 0.95 of oneDNN's time, and 0.72 to
   1 of that of the kernel for small images. */
bool conv2d_suits_direct(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *out = call->out[0]->shape.dim;

    if (call->in[0]->dtype == CO_BF16)
        return conv2d_suits_direct_half(call, why);
    *why = "it comes first at AVX2 alone";
    if (!co_isa_has(CO_ISA_AVX2) || co_isa_has(CO_ISA_AVX512))
        return false;
    *why = "its stride is 1, its kernel 1x1, or its result small";
    return a->s[0] * a->s[1] > 1 && a->k[0] * a->k[1] > 1 && out[2] * out[3] >= DIRECT_MIN_PIXELS;
}
