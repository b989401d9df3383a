/*
 * weights_avx512.c - a convolution's weight from oneDNN's blocks, (out / 16, in / 16, taps, 16 in,
 * 16 out), to rows, (out, in, taps).
 *
 * oneDNN's own reorder writes the elements of a row one by one, and where the distance of rows is a
 * power of two their lines evict each other from the cache in between.
 */
#include "kernels/weights/weights.h"

#define LANES WEIGHTS_BLOCK
#include "kernels/simd.h"

/* One block: 16 rows of `row` floats at `to`. */
SIMD_INLINE void weights_put_block(float *to, int64_t row, const float *from, int64_t taps,
                                   bool add)
{
    for (int64_t e = 0; e < LANES * taps; e += LANES) {
        vec v[LANES];

        SIMD_UNROLL(36)
        for (int l = 0; l < LANES; l++)
            v[l] = *(const vec *)(from + ((e + l) % taps * LANES + (e + l) / taps) * LANES);
        simd_transpose(v);
        SIMD_UNROLL(36) for (int l = 0; l < LANES; l++)
        {
            loose_vec *at = (loose_vec *)(to + l * row + e);

            if (add)
                v[l] += *at;
            *at = v[l];
        }
    }
}

void weights_to_rows_avx512(float *to, const float *from, int64_t in, int64_t taps, bool add)
{
    for (int64_t i = 0; i < in; i += LANES, to += LANES * taps, from += LANES * LANES * taps) {
        if (taps == 1)
            weights_put_block(to, in, from, 1, add);
        else
            weights_put_block(to, in * taps, from, taps, add);
    }
}
