/* bits.h - floats compared by their bits: 0 and -0 differ, a number that is none equals itself. */
#ifndef CO_TESTS_BITS_H
#define CO_TESTS_BITS_H

#include <stdbool.h>
#include <string.h>

static inline bool bits_are_same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

#endif
