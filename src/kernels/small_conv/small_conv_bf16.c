/*
 * small_conv_bf16.c - the loops of small_conv.h for tensors of BF16, with the products of BF16 that
 * AVX-512 has and sums in fp32. A word of an image is a pair of channels; in gradients of weights,
 * of samples.
 */
#define LANES            16
#define SMALL_CONV_ROWS  8
#define SMALL_CONV_DEPTH 8
#define SMALL_CONV_TABLE small_conv_loops_bf16
#define SMALL_CONV_NAME  "taps:bf16"
#define CELL_HALF
#define SMALL_CONV_WORDS (LANES / 2)
#define SMALL_CONV_JOIN  small_conv_join
#define SMALL_CONV_HALVE small_conv_halve

#include "kernels/half16.h"
#include "kernels/small_conv/small_conv.h"

static void small_conv_join(float *to, const void *first, const void *second, int64_t n)
{
    const uint16_t *a = first, *b = second;

    for (int64_t i = 0; i < n; i += LANES)
        simd_store(to + i, half16_join(half16_take(a + i), b ? half16_take(b + i) : (half16){0}));
}

static void small_conv_halve(float *weight, int64_t n)
{
    half16_join_rows(weight, weight, n, LANES);
}

#include "kernels/small_conv/small_conv_impl.h"
