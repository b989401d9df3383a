/*
 * rng.h - what random numbers are for (ext/rng.h has them), and what loops need that make many.
 */
#ifndef CO_CORE_RNG_H
#define CO_CORE_RNG_H

#include <cohort/ext/rng.h>

/* The purpose of a number; two uses with one stream and one position would share bits. */
typedef enum co_rng_stream {
    CO_RNG_INIT = 1,  /* (param index, element) */
    CO_RNG_SHUFFLE,   /* (epoch, part) */
    CO_RNG_DROPOUT,   /* (step, sample, element); the node's index is mixed into the stream */
    CO_RNG_SYNTHETIC, /* (sample, element) */
    CO_RNG_TEST,
    CO_RNG_PARTITION, /* (label, part) */
    CO_RNG_AUGMENT,   /* (epoch, sample); the place in the list is mixed into the stream */
    CO_RNG_COMPRESS,  /* (step, tensor, element) */
    CO_RNG_ROUND,     /* (step, rank, element); half.h says which bits are an element's */
    CO_RNG_WINDOWS,   /* (epoch, sequence) */
    CO_RNG_GENERATE,  /* (token) */
    CO_RNG_EXPLAIN    /* (element): which samples are looked at */
} co_rng_stream;

/* Philox's key at this position: the seed, for steps below 2^32. */
static inline uint64_t co_rng_key(const co_rng *rng)
{
    return rng->seed + (rng->step >> 32) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Philox's constants, for loops that make many blocks at once. */
#define CO_RNG_ROUNDS   10
#define CO_RNG_FACTOR_0 UINT64_C(0xD2511F53)
#define CO_RNG_FACTOR_1 UINT64_C(0xCD9E8D57)
#define CO_RNG_WEYL_0   0x9E3779B9u
#define CO_RNG_WEYL_1   0xBB67AE85u

/* One block: co_rng_block, for loops of any device. */
static inline void co_rng_philox(uint32_t out[4], const co_rng *rng, uint32_t block)
{
    const uint64_t key = co_rng_key(rng);
    uint32_t c0 = block, c1 = rng->item, c2 = (uint32_t)rng->step, c3 = rng->stream;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < CO_RNG_ROUNDS; round++) {
        const uint64_t a = CO_RNG_FACTOR_0 * c0, b = CO_RNG_FACTOR_1 * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += CO_RNG_WEYL_0;
        k1 += CO_RNG_WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* co_rng_shuffle, for loops of any device. */
static inline void co_rng_permute(uint32_t *perm, uint32_t n, const co_rng *rng)
{
    uint64_t at = 0;
    uint32_t word[4];

    for (uint32_t i = 0; i < n; i++)
        perm[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        /* Words below the largest multiple of i are used, so that each of 0 .. i-1 has the same
           probability. */
        uint32_t limit = (uint32_t)(UINT32_MAX - UINT32_MAX % i), w, j, swap;

        do {
            if (at % 4 == 0)
                co_rng_philox(word, rng, (uint32_t)(at / 4));
            w = word[at++ % 4];
        } while (w >= limit);
        j = w % i;
        swap = perm[i - 1];
        perm[i - 1] = perm[j];
        perm[j] = swap;
    }
}

/* Word `i` of this position (word i%4 of block i/4). */
uint32_t co_rng_word(const co_rng *rng, uint64_t i);
/* Uniform in [0, 1) with 24 bits, from a word. */
static inline float co_rng_to_unit(uint32_t word)
{
    return (float)(word >> 8) * (1.0f / 16777216.0f);
}
#endif
