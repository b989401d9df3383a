/*
 * sample_lanes_random.h - random numbers for several samples at once: those of core/rng.h. Included
 * only by sample_lanes_impl.h, once per instruction set.
 */
#include "kernels/simd_random.h"

static void lanes_mark(int32_t *mark, uint8_t *kept, const co_rng *rng, const uint32_t *item,
                       uint32_t below, int64_t n)
{
    for (int64_t first = 0; first < n; first += 4) {
        uvec c[4] = {(uvec){0} + (uint32_t)(first / 4), *(const loose_uvec *)item,
                     (uvec){0} + (uint32_t)rng->step, (uvec){0} + rng->stream};

        simd_philox(c, co_rng_key(rng));
        for (int64_t e = 0; e < 4 && first + e < n; e++) {
            const ivec drop = (ivec)((c[e] >> 8) < below);

            *(ivec *)(mark + (first + e) * LANES) = drop;
            lanes_narrow(kept + (first + e) * LANES, drop & 1);
        }
    }
}

static void lanes_mark_again(int32_t *mark, const uint8_t *kept, int64_t n)
{
    for (int64_t i = 0; i < n * LANES; i += LANES)
        *(ivec *)(mark + i) = (ivec){0} - lanes_widen(kept + i);
}
