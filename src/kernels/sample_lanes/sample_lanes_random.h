/*
 * sample_lanes_random.h - random numbers for several samples at once: those of core/rng.h. Included
 * only by sample_lanes_impl.h, once per instruction set.
 */
#include "kernels/simd_random.h"

static void lanes_mark(int32_t *mark, uint8_t *kept, const co_rng *rng, const uint32_t *item,
                       uint32_t below, int64_t n)
{
    const uvec sample = *(const loose_uvec *)item;
    const uvec step = (uvec){0} + (uint32_t)rng->step, stream = (uvec){0} + rng->stream;

    for (int64_t first = 0; first < n; first += 8) {
        const uint32_t block = (uint32_t)(first / 4);
        uvec c[2][4] = {{(uvec){0} + block, sample, step, stream},
                        {(uvec){0} + block + 1, sample, step, stream}};

        simd_philox(c, 2, co_rng_key(rng));
        for (int64_t e = 0; e < 8 && first + e < n; e++) {
            const ivec drop = (ivec)((c[e / 4][e % 4] >> 8) < below);

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
