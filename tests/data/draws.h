/* draws.h - random numbers of a test program, the same in each run. */
#ifndef CO_TESTS_DRAWS_H
#define CO_TESTS_DRAWS_H

#include "core/rng.h"

static inline uint32_t draw_word(void)
{
    static uint64_t at;

    return co_rng_word(&(co_rng){0}, at++);
}

/* From 0 to n - 1. */
static inline int draw_below(int n)
{
    return (int)(draw_word() % (uint32_t)n);
}

/* In [0, 1). */
static inline float draw_unit(void)
{
    return co_rng_to_unit(draw_word());
}

#endif
