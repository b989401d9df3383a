/*
 * python_random.c - MT19937 as CPython seeds and draws from it.
 *
 * M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998; the seeding by array
 * is theirs of 2002. Only for parts that must equal Python's: everything else uses core/rng.h.
 */
#include "data/python_random.h"

#define PYTHON_RANDOM_N 624
#define PYTHON_RANDOM_M 397

typedef struct python_random {
    uint32_t word[PYTHON_RANDOM_N];
    int at; /* next word to draw */
} python_random;

static void python_random_seed_word(python_random *r, uint32_t seed)
{
    r->word[0] = seed;
    for (uint32_t i = 1; i < PYTHON_RANDOM_N; i++)
        r->word[i] = 1812433253u * (r->word[i - 1] ^ r->word[i - 1] >> 30) + i;
    r->at = PYTHON_RANDOM_N;
}

/* init_by_array with the seed's 32-bit digits, the lowest first. */
static void python_random_seed(python_random *r, uint64_t seed)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t digits = key[1] ? 2 : 1;
    uint32_t *word = r->word, i = 1, j = 0;

    python_random_seed_word(r, 19650218u);
    for (int k = 0; k < PYTHON_RANDOM_N; k++) {
        word[i] = (word[i] ^ (word[i - 1] ^ word[i - 1] >> 30) * 1664525u) + key[j] + j;
        j = (j + 1) % digits;
        if (++i == PYTHON_RANDOM_N) {
            word[0] = word[PYTHON_RANDOM_N - 1];
            i = 1;
        }
    }
    for (int k = 1; k < PYTHON_RANDOM_N; k++) {
        word[i] = (word[i] ^ (word[i - 1] ^ word[i - 1] >> 30) * 1566083941u) - i;
        if (++i == PYTHON_RANDOM_N) {
            word[0] = word[PYTHON_RANDOM_N - 1];
            i = 1;
        }
    }
    word[0] = 0x80000000u;
}

static void python_random_twist(python_random *r)
{
    uint32_t *word = r->word;

    for (int i = 0; i < PYTHON_RANDOM_N; i++) {
        uint32_t y = (word[i] & 0x80000000u) | (word[(i + 1) % PYTHON_RANDOM_N] & 0x7fffffffu);

        word[i] =
            word[(i + PYTHON_RANDOM_M) % PYTHON_RANDOM_N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    r->at = 0;
}

static uint32_t python_random_word(python_random *r)
{
    uint32_t y;

    if (r->at == PYTHON_RANDOM_N)
        python_random_twist(r);
    y = r->word[r->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Random._randbelow: draws of n's bit length until one is below n. */
static uint32_t python_random_below(python_random *r, uint32_t n)
{
    const int shift = __builtin_clz(n);
    uint32_t draw;

    do
        draw = python_random_word(r) >> shift;
    while (draw >= n);
    return draw;
}

void co_python_shuffle(uint32_t *order, uint32_t n, uint64_t seed)
{
    python_random r;

    python_random_seed(&r, seed);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = python_random_below(&r, i), swap = order[i - 1];

        order[i - 1] = order[j];
        order[j] = swap;
    }
}
