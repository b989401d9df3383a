/* mt19937.h - Mersenne Twister, to reproduce orders drawn by other programs. */
#ifndef CO_DATA_MT19937_H
#define CO_DATA_MT19937_H

#include <stdint.h>

#define CO_MT19937_WORDS 624

typedef struct co_mt19937 {
    uint32_t word[CO_MT19937_WORDS];
    int at; /* next word to draw */
} co_mt19937;

/* init_genrand, as in PyTorch's manual_seed. */
void co_mt19937_seed(co_mt19937 *r, uint32_t seed);
/* init_by_array of the seed's 32-bit digits, lowest first, as in Python's random.Random(seed). */
void co_mt19937_seed_digits(co_mt19937 *r, uint64_t seed);
/* The next 32 bits. */
uint32_t co_mt19937_next(co_mt19937 *r);

#endif
