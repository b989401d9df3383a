/*
 * simd_random.h - the random numbers of core/rng.h, by LANES blocks of Philox4x32-10 side by side.
 */
#ifndef CO_KERNELS_SIMD_RANDOM_H
#define CO_KERNELS_SIMD_RANDOM_H

#ifdef __ARM_NEON
#include <arm_neon.h>
#endif

#include "core/rng.h"
#include "kernels/simd.h"

#define SIMD_RANDOM_WORDS (4 * LANES) /* of LANES blocks */

typedef uint64_t simd_wide __attribute__((vector_size(LANES * sizeof(uint32_t)), may_alias));

/* Product of the lower halves of 64 bits. */
SIMD_INLINE simd_wide simd_multiply_low(simd_wide a, uint32_t factor)
{
#if LANES == 16 && defined(__AVX512F__)
    return (simd_wide)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((int64_t)factor));
#elif LANES == 8 && defined(__AVX2__)
    return (simd_wide)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((int64_t)factor));
#elif LANES == 4 && defined(__ARM_NEON)
    return (simd_wide)vmull_n_u32(vmovn_u64((uint64x2_t)a), factor);
#else
    return (a & UINT32_MAX) * (uint64_t)factor;
#endif
}

/* Upper and lower halves of the products, lane by lane. */
SIMD_INLINE void simd_multiply_words(uvec *high, uvec *low, uvec a, uint32_t factor)
{
    const simd_wide even = simd_multiply_low((simd_wide)a, factor);
    const simd_wide odd = simd_multiply_low((simd_wide)a >> 32, factor);

#if LANES == 8 && defined(__AVX2__)
    *high = (uvec)_mm256_blend_epi32((__m256i)(even >> 32), (__m256i)odd, 0xaa);
    *low = (uvec)_mm256_blend_epi32((__m256i)even, (__m256i)(odd << 32), 0xaa);
#else
    *high = (uvec)(even >> 32 | (odd & ~(uint64_t)UINT32_MAX));
    *low = (uvec)((even & UINT32_MAX) | odd << 32);
#endif
}

SIMD_INLINE void simd_philox_round(uvec c[4], uint32_t k0, uint32_t k1)
{
    uvec high[2], low[2];

    simd_multiply_words(&high[0], &low[0], c[0], (uint32_t)CO_RNG_FACTOR_0);
    simd_multiply_words(&high[1], &low[1], c[2], (uint32_t)CO_RNG_FACTOR_1);
    c[0] = high[1] ^ c[1] ^ k0;
    c[1] = low[1];
    c[2] = high[0] ^ c[3] ^ k1;
    c[3] = low[0];
}

/* A block of counters in each lane, to its random words; `chains` of them at once, as the rounds of
   one wait for each other. */
SIMD_INLINE void simd_philox(uvec (*c)[4], const int chains, uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < CO_RNG_ROUNDS; round++) {
        SIMD_UNROLL(2)
        for (int i = 0; i < chains; i++)
            simd_philox_round(c[i], k0, k1);
        k0 += CO_RNG_WEYL_0;
        k1 += CO_RNG_WEYL_1;
    }
}

/* Lane l of two vectors that are put into each other: of their first half, or of their second. */
#define SIMD_ZIP(half, l) ((l) % 2 * LANES + ((half)*LANES + (l)) / 2)

#define SIMD_ZIP_INTO(low, high, a, b)                                                             \
    const uvec low = __builtin_shufflevector(a, b, SIMD_ALL(SIMD_ZIP, 0));                         \
    const uvec high = __builtin_shufflevector(a, b, SIMD_ALL(SIMD_ZIP, 1))

/* Words of blocks first .. first + LANES - 1 of a position, in their order. */
SIMD_INLINE void simd_random_words(uvec out[4], const co_rng *rng, uint32_t first)
{
    static const uint32_t lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uvec c[4] = {*(const loose_uvec *)lane + first, (uvec){0} + rng->item,
                 (uvec){0} + (uint32_t)rng->step, (uvec){0} + rng->stream};

    simd_philox(&c, 1, co_rng_key(rng));
    {
        SIMD_ZIP_INTO(even_low, even_high, c[0], c[2]);
        SIMD_ZIP_INTO(odd_low, odd_high, c[1], c[3]);
        SIMD_ZIP_INTO(first_quarter, second_quarter, even_low, odd_low);
        SIMD_ZIP_INTO(third_quarter, last_quarter, even_high, odd_high);

        out[0] = first_quarter;
        out[1] = second_quarter;
        out[2] = third_quarter;
        out[3] = last_quarter;
    }
}

#endif
