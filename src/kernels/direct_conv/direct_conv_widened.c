/*
 * direct_conv_widened.c - the loops of direct_conv.h for tensors of BF16, with products of floats:
 * for CPUs that multiply these faster. Images are copied to floats, weights are rounded to BF16.
 */
#define LANES              16
#define DIRECT_CONV_PIXELS 14
#define DIRECT_CONV_DEPTH  8
#define DIRECT_CONV_TABLE  direct_conv_loops_widened
#define DIRECT_CONV_NAME   "direct:bf16 in floats"
#define CELL_HALF
#define CELL_WIDENED
#define DIRECT_CONV_WORDS  LANES
#define DIRECT_CONV_SPREAD direct_conv_widen
#define DIRECT_CONV_HALVE  NULL
#define DIRECT_CONV_PAIR   NULL
#define DIRECT_CONV_JOIN   NULL
#define DIRECT_CONV_PACK   direct_conv_pack_rounded

#include "kernels/direct_conv/direct_conv_images.h"
/* after it */
#include "kernels/direct_conv/direct_conv_floats.h"
#include "kernels/direct_conv/direct_conv_unpack.h"
#include "kernels/direct_conv/direct_conv_widen.h"

static void direct_conv_widen(float *to, const void *from, const direct_conv_spread *how)
{
    direct_conv_widen_plane(to, from, how, how->blocks ? LANES : 1);
}

static void direct_conv_pack_rounded(float *to, const float *weight,
                                     const direct_conv_weight *shape, int64_t k)
{
    const int64_t blocks = shape->blocks ? (shape->in + LANES - 1) / LANES * LANES : shape->in;

    direct_conv_pack(to, weight, shape, k);
    for (int64_t i = 0; i < blocks * shape->taps * LANES; i += LANES)
        simd_store(to + i, half16_widen(half16_round(simd_load(to + i))));
}

#include "kernels/direct_conv/direct_conv_impl.h"
