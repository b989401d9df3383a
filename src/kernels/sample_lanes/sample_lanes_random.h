/*
 * sample_lanes_random.h - random numbers for several samples at once: those of core/rng.h,
 * Philox4x32-10. Included only by sample_lanes_impl.h, once per instruction set.
 */

/* Upper halves of the products a * factor. */
SIMD_INLINE uvec lanes_multiply_high(uvec a, const uint64_t factor)
{
    const wide even = ((wide)a & UINT32_MAX) * factor, odd = ((wide)a >> 32) * factor;

    return (uvec)(even >> 32 | (odd & ~(uint64_t)UINT32_MAX));
}

SIMD_INLINE void lanes_philox(uvec c[4], uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < CO_RNG_ROUNDS; round++) {
        const uvec a = c[0], b = c[2];

        c[0] = lanes_multiply_high(b, CO_RNG_FACTOR_1) ^ c[1] ^ k0;
        c[1] = b * CO_RNG_FACTOR_1;
        c[2] = lanes_multiply_high(a, CO_RNG_FACTOR_0) ^ c[3] ^ k1;
        c[3] = a * CO_RNG_FACTOR_0;
        k0 += CO_RNG_WEYL_0;
        k1 += CO_RNG_WEYL_1;
    }
}

static void lanes_mark(int32_t *mark, const co_rng *rng, const uint32_t *item, uint32_t below,
                       int64_t n)
{
    for (int64_t first = 0; first < n; first += 4) {
        uvec c[4] = {(uvec){0} + (uint32_t)(first / 4), *(const loose_uvec *)item,
                     (uvec){0} + (uint32_t)rng->step, (uvec){0} + rng->stream};

        lanes_philox(c, co_rng_key(rng));
        for (int64_t e = 0; e < 4 && first + e < n; e++)
            *(ivec *)(mark + (first + e) * LANES) = (ivec)((c[e] >> 8) < below);
    }
}
