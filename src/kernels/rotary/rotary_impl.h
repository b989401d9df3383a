/*
 * rotary_impl.h - the loops of rotary.h for LANES lanes. Included once for each level of
 * instructions, by a file that defines LANES and ROTARY_TABLE.
 */
#include "kernels/rotary/rotary.h"
#include "kernels/simd.h"

static void rotary_rotate(float *y, const float *x, const float *cosine, const float *sine,
                          float sign, int64_t heads, int64_t half)
{
    for (int64_t h = 0; h < heads; h++, x += 2 * half, y += 2 * half) {
        int64_t i = 0;

        for (; i + LANES <= half; i += LANES) {
            const vec c = simd_load_any(cosine + i), s = simd_load_any(sine + i) * sign;
            const vec a = simd_load_any(x + i), b = simd_load_any(x + i + half);

            simd_store_any(y + i, a * c - b * s);
            simd_store_any(y + i + half, b * c + a * s);
        }
        for (; i < half; i++) {
            const float c = cosine[i], s = sine[i] * sign, a = x[i], b = x[i + half];

            y[i] = a * c - b * s;
            y[i + half] = b * c + a * s;
        }
    }
}

const rotary_loops ROTARY_TABLE = {rotary_rotate};
