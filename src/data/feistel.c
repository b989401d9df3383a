/*
 * feistel.c - a random permutation, computed element by element.
 *
 * A Feistel network over the bits of n - 1 (Luby and Rackoff, SIAM J. Comput. 17, 1988): each round
 * XORs one half of the bits with a random function of the other half, which can be undone, so all
 * numbers of that many bits are permuted. A result that is not below n is permuted again until it
 * is ("cycle walking", Black and Rogaway, CT-RSA 2002): less than twice on average.
 */
#include "data/feistel.h"

#define FEISTEL_ROUNDS 8 /* 4 are enough for large n; small n have few bits per half */

static uint64_t feistel_function(const co_rng *rng, uint32_t round, uint64_t half)
{
    co_rng place = *rng;
    uint32_t word[4];

    place.stream |= 1u << 8; /* separate from the streams of other shuffles */
    place.item = round;
    co_rng_block(word, &place, (uint32_t)half);
    return word[0];
}

static uint64_t feistel_once(uint64_t x, unsigned bits, const co_rng *rng)
{
    const unsigned low = bits / 2;
    const uint64_t masks[2] = {((uint64_t)1 << (bits - low)) - 1, ((uint64_t)1 << low) - 1};
    uint64_t half[2] = {x >> low, x & masks[1]};

    for (uint32_t round = 0; round < FEISTEL_ROUNDS; round++) {
        const uint32_t to = round % 2;

        half[to] ^= feistel_function(rng, round, half[!to]) & masks[to];
    }
    return half[0] << low | half[1];
}

uint64_t co_feistel(uint64_t i, uint64_t n, const co_rng *rng)
{
    unsigned bits = 0;

    while (bits < 64 && (n - 1) >> bits)
        bits++;
    do
        i = feistel_once(i, bits, rng);
    while (i >= n);
    return i;
}
