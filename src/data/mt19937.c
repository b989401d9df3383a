/*
 * mt19937.c - Mersenne Twister, the generator of Python's random module and PyTorch's CPU
 * generator.
 *
 * M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998; seeding by array is
 * from their version of 2002. Only for orders that must equal those programs': everything else uses
 * core/rng.h.
 */
#include "data/mt19937.h"

#define MT_N CO_MT19937_WORDS
#define MT_M 397

void co_mt19937_seed(co_mt19937 *r, uint32_t seed)
{
    r->word[0] = seed;
    for (uint32_t i = 1; i < MT_N; i++)
        r->word[i] = 1812433253u * (r->word[i - 1] ^ r->word[i - 1] >> 30) + i;
    r->at = MT_N;
}

void co_mt19937_seed_digits(co_mt19937 *r, uint64_t seed)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t digits = key[1] ? 2 : 1;
    uint32_t *word = r->word, i = 1, j = 0;

    co_mt19937_seed(r, 19650218u);
    for (int k = 0; k < MT_N; k++) {
        word[i] = (word[i] ^ (word[i - 1] ^ word[i - 1] >> 30) * 1664525u) + key[j] + j;
        j = (j + 1) % digits;
        if (++i == MT_N) {
            word[0] = word[MT_N - 1];
            i = 1;
        }
    }
    for (int k = 1; k < MT_N; k++) {
        word[i] = (word[i] ^ (word[i - 1] ^ word[i - 1] >> 30) * 1566083941u) - i;
        if (++i == MT_N) {
            word[0] = word[MT_N - 1];
            i = 1;
        }
    }
    word[0] = 0x80000000u;
}

static void mt19937_twist(co_mt19937 *r)
{
    uint32_t *word = r->word;

    for (int i = 0; i < MT_N; i++) {
        uint32_t y = (word[i] & 0x80000000u) | (word[(i + 1) % MT_N] & 0x7fffffffu);

        word[i] = word[(i + MT_M) % MT_N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    r->at = 0;
}

uint32_t co_mt19937_next(co_mt19937 *r)
{
    uint32_t y;

    if (r->at == MT_N)
        mt19937_twist(r);
    y = r->word[r->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}
