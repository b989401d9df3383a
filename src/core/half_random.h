/*
 * half_random.h - stochastic rounding; included by each set of loops.
 *
 * Sixteen blocks of random numbers are made side by side: for 128 elements. They are those of
 * rng.c.
 */
#ifndef CO_CORE_HALF_RANDOM_H
#define CO_CORE_HALF_RANDOM_H

#include "core/half_impl.h"

#define HALF_BLOCKS 16
#define HALF_GROUP  ((size_t)(8 * HALF_BLOCKS)) /* a block has 8 times 16 bits */

/* As wide as the level's vectors: wider ones would go through memory. */
typedef uint32_t half_lanes
    __attribute__((vector_size(HALF_STEP * sizeof(uint32_t)), aligned(4), may_alias));
typedef uint64_t half_wide __attribute__((vector_size(HALF_STEP * sizeof(uint32_t))));

/* Lane by lane, both halves of the product with `factor`. */
static inline void half_multiply(half_lanes *high, half_lanes *low, const half_lanes *a,
                                 uint64_t factor)
{
    const half_wide even = ((half_wide)*a & UINT32_MAX) * factor;
    const half_wide odd = ((half_wide)*a >> 32) * factor;

    *high = (half_lanes)(even >> 32 | (odd & ~(uint64_t)UINT32_MAX));
    *low = (half_lanes)((even & UINT32_MAX) | odd << 32);
}

/* What blocks first .. first + HALF_STEP - 1 of 16 have for a group. */
static inline void half_draw_some(uint32_t *bits, const co_rng *rng, uint32_t first)
{
    static const uint32_t lane[HALF_BLOCKS] = {0, 1, 2,  3,  4,  5,  6,  7,
                                               8, 9, 10, 11, 12, 13, 14, 15};
    half_lanes c[4] = {*(const half_lanes *)(const void *)lane + first, (half_lanes){0} + rng->item,
                       (half_lanes){0} + (uint32_t)rng->step, (half_lanes){0} + rng->stream};
    const uint64_t key = co_rng_key(rng);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < CO_RNG_ROUNDS; round++) {
        half_lanes high[2], low[2];

        half_multiply(&high[0], &low[0], &c[0], CO_RNG_FACTOR_0);
        half_multiply(&high[1], &low[1], &c[2], CO_RNG_FACTOR_1);
        c[0] = high[1] ^ c[1] ^ k0;
        c[1] = low[1];
        c[2] = high[0] ^ c[3] ^ k1;
        c[3] = low[0];
        k0 += CO_RNG_WEYL_0;
        k1 += CO_RNG_WEYL_1;
    }
    for (size_t w = 0; w < 4; w++) {
        const half_lanes halves[2] = {c[w] & 0xffff, c[w] >> 16};

        memcpy(bits + w * HALF_BLOCKS, &halves[0], sizeof(halves[0]));
        memcpy(bits + (w + 4) * HALF_BLOCKS, &halves[1], sizeof(halves[1]));
    }
}

/* 16 bits for each element of a group. */
static inline void half_draw(uint32_t bits[HALF_GROUP], const co_rng *rng, uint64_t group)
{
    for (uint32_t l = 0; l < HALF_BLOCKS; l += HALF_STEP)
        half_draw_some(bits + l, rng, (uint32_t)group * HALF_BLOCKS + l);
}

/* `dtype` is a constant where this is inlined. */
static inline void half_stochastic(float *x, size_t n, co_dtype dtype, const co_rng *rng,
                                   uint64_t first)
{
    for (size_t i = 0; i < n;) {
        const size_t at = (size_t)((first + i) % HALF_GROUP);
        const size_t part = n - i < HALF_GROUP - at ? n - i : HALF_GROUP - at;
        uint32_t bits[HALF_GROUP];

        half_draw(bits, rng, (first + i) / HALF_GROUP);
        for (size_t e = 0; e < part; e++)
            x[i + e] = dtype == CO_F16 ? half_random_f16(x[i + e], bits[at + e])
                                       : half_random_bf16(x[i + e], bits[at + e]);
        i += part;
    }
}

static void half_stochastic_bf16(float *x, size_t n, const co_rng *rng, uint64_t first)
{
    half_stochastic(x, n, CO_BF16, rng, first);
}

static void half_stochastic_f16(float *x, size_t n, const co_rng *rng, uint64_t first)
{
    half_stochastic(x, n, CO_F16, rng, first);
}

#endif
