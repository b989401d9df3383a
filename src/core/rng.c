/*
 * rng.c - numbers of several kinds from Philox's blocks.
 */
#include "core/rng.h"

#include <math.h>

void co_rng_block(uint32_t out[4], const co_rng *rng, uint32_t block)
{
    co_rng_philox(out, rng, block);
}

uint32_t co_rng_word(const co_rng *rng, uint64_t i)
{
    uint32_t word[4];

    co_rng_block(word, rng, (uint32_t)(i / 4));
    return word[i % 4];
}

void co_rng_uniform(float *out, const co_rng *rng, uint64_t first, uint64_t n)
{
    uint32_t word[4];

    for (uint64_t i = 0; i < n; i++) {
        if (i == 0 || (first + i) % 4 == 0)
            co_rng_block(word, rng, (uint32_t)((first + i) / 4));
        out[i] = co_rng_to_unit(word[(first + i) % 4]);
    }
}

/* The pair of normal numbers of words `i` and `i` + 1 of a block. */
static void rng_pair(double out[2], const uint32_t word[4], uint64_t i)
{
    /* (0, 1] under the logarithm */
    const double radius = sqrt(-2.0 * log(((double)word[i] + 1.0) / 4294967296.0));
    const double angle = 6.283185307179586 * ((double)word[i + 1] / 4294967296.0);

    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

void co_rng_normal(float *out, const co_rng *rng, uint64_t first, uint64_t n)
{
    uint32_t word[4];
    double pair[2];

    for (uint64_t i = 0; i < n; i++) {
        const uint64_t at = first + i;

        if (i == 0 || at % 4 == 0)
            co_rng_block(word, rng, (uint32_t)(at / 4));
        if (i == 0 || at % 2 == 0)
            rng_pair(pair, word, at % 4 / 2 * 2);
        out[i] = (float)pair[at % 2];
    }
}

void co_rng_shuffle(uint32_t *perm, uint32_t n, const co_rng *rng)
{
    co_rng_permute(perm, n, rng);
}
