/*
 * direct_conv_half.h - weights and images of BF16 as pairs, for blocks of DIRECT_CONV_BLOCK
 * channels: a part of direct_conv.h's loops that two files share.
 */
#include "kernels/half16.h"

static void direct_conv_halve(float *to, const float *from, int64_t n, int64_t row)
{
    half16_join_rows(to, from, 2 * n, row);
}

/* From pairs of inputs to pairs of outputs: each number is the upper half of a float meanwhile. */
static void direct_conv_turn(float *to, const float *from)
{
    const int64_t block = DIRECT_CONV_BLOCK;

    for (int64_t r = 0; r < block; r += LANES)
        for (int64_t c = 0; c < block; c += LANES) {
            vec v[LANES];

            SIMD_UNROLL(8) for (int i = 0; i < LANES; i += 2)
            {
                const uvec pair = (uvec)simd_load(from + (r + i) / 2 * block + c);

                v[i] = (vec)(pair << 16);
                v[i + 1] = (vec)(pair & ~(uint32_t)UINT16_MAX);
            }
            simd_transpose(v);
            SIMD_UNROLL(8) for (int i = 0; i < LANES; i += 2)
            {
                simd_store(to + (c + i) / 2 * block + r, (vec)((uvec)v[i] >> 16 | (uvec)v[i + 1]));
            }
        }
}

/* Pixels c and c + 1 of row r of a copy: LANES channels from `channel` on. */
SIMD_INLINE vec direct_conv_find_pair(const uint16_t *x, const direct_conv_spread *how, int64_t r,
                                      int64_t c, int64_t channel)
{
    const int64_t row = how->top + r * how->step[0];
    half16 pixel[2] = {{0}};

    for (int64_t i = 0; i < 2; i++) {
        const int64_t column = how->left + (c + i) * how->step[1];

        if (row >= 0 && row < how->h && column >= 0 && column < how->w && c + i < how->columns)
            pixel[i] = half16_take(x + (row * how->w + column) * DIRECT_CONV_BLOCK + channel);
    }
    return half16_join(pixel[0], pixel[1]);
}
