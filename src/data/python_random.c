/*
 * python_random.c - the shuffle of CPython's random module.
 */
#include "data/python_random.h"
#include "data/mt19937.h"

/* Random._randbelow: as many random bits as n has, until they are below n. */
static uint32_t python_random_below(co_mt19937 *r, uint32_t n)
{
    const int shift = __builtin_clz(n);
    uint32_t draw;

    do
        draw = co_mt19937_next(r) >> shift;
    while (draw >= n);
    return draw;
}

void co_python_shuffle(uint32_t *order, uint32_t n, uint64_t seed)
{
    co_mt19937 r;

    co_mt19937_seed_digits(&r, seed);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = python_random_below(&r, i), swap = order[i - 1];

        order[i - 1] = order[j];
        order[j] = swap;
    }
}
