/* mt19937.h - the Mersenne Twister, for orders that other programs have drawn with it. */
#ifndef CO_DATA_MT19937_H
#define CO_DATA_MT19937_H

#include <stdint.h>

#define CO_MT19937_WORDS 624

typedef struct co_mt19937 {
    uint32_t word[CO_MT19937_WORDS];
    int at; /* next word to draw */
} co_mt19937;

/* init_genrand: PyTorch's manual_seed. */
void co_mt19937_seed(co_mt19937 *r, uint32_t seed);
/* init_by_array of the seed's 32-bit digits, the lowest first: Python's random.Random(seed). */
void co_mt19937_seed_digits(co_mt19937 *r, uint64_t seed);
/* The next 32 bits. */
uint32_t co_mt19937_next(co_mt19937 *r);

#endif
