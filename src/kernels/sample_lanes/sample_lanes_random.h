/*
 * sample_lanes_random.h - random numbers for several samples at once: those of core/rng.h,
 * Philox4x32-10. Included only by sample_lanes_impl.h, once per instruction set.
 */

/* Upper and lower halves of the products a * factor. */
SIMD_INLINE void lanes_multiply_words(uvec *high, uvec *low, uvec a, const uint32_t factor)
{
#ifdef LANES_MULTIPLIES
    lanes_multiply((lanes_int *)high, (lanes_int *)low, (lanes_int)a, factor);
#else
    const uint64_t by = factor;
    const wide even = ((wide)a & UINT32_MAX) * by, odd = ((wide)a >> 32) * by;

    *high = (uvec)(even >> 32 | (odd & ~(uint64_t)UINT32_MAX));
    *low = a * factor;
#endif
}

SIMD_INLINE void lanes_philox(uvec c[4], uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < CO_RNG_ROUNDS; round++) {
        uvec high[2], low[2];

        lanes_multiply_words(&high[0], &low[0], c[0], CO_RNG_FACTOR_0);
        lanes_multiply_words(&high[1], &low[1], c[2], CO_RNG_FACTOR_1);
        c[0] = high[1] ^ c[1] ^ k0;
        c[1] = low[1];
        c[2] = high[0] ^ c[3] ^ k1;
        c[3] = low[0];
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
