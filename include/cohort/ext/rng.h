/*
 * ext/rng.h - random numbers as a pure function of their position.
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): no state, so
 * any rank can compute any number, and nothing depends on the rank or thread that does. A position
 * is (seed, stream, step, item); each has 2^34 words.
 */
#ifndef COHORT_EXT_RNG_H
#define COHORT_EXT_RNG_H

#include <cohort/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Streams of plugins: CO_RNG_PLUGIN | n << 8 for any n. Others are Cohort's own. */
#define CO_RNG_PLUGIN 0x80u

typedef struct co_rng {
    uint64_t seed;
    uint32_t stream; /* what the numbers are for: two uses of one position share them */
    uint64_t step;   /* epoch or step; its upper half changes the key, which has room for it */
    uint32_t item;   /* sample, parameter or part */
} co_rng;

/** Four words of block `block` of this position. */
CO_API void co_rng_block(uint32_t out[4], const co_rng *rng, uint32_t block);
/** Elements first .. first + n - 1 of this position's uniform [0, 1) sequence, of 24 bits each. */
CO_API void co_rng_uniform(float *out, const co_rng *rng, uint64_t first, uint64_t n);
/** The same for the standard normal sequence (Box-Muller on pairs of words). */
CO_API void co_rng_normal(float *out, const co_rng *rng, uint64_t first, uint64_t n);
/** Fisher-Yates with this position's words (rejection, no modulo bias): `perm` becomes a
 * permutation of its n entries. n < 2^32. */
CO_API void co_rng_shuffle(uint32_t *perm, uint32_t n, const co_rng *rng);

#ifdef __cplusplus
}
#endif
#endif
