/*
 * finite.c - whether a gradient has overflowed.
 */
#include <string.h>

#include "optim/optim.h"

#define FINITE_BLOCK    ((size_t)4096)
#define FINITE_EXPONENT 0x7f800000u

/* Vector code at any level of optimisation. */
#if defined(__GNUC__) && !defined(__clang__)
#define FINITE_LOOP __attribute__((optimize("O3")))
#else
#define FINITE_LOOP
#endif

/* The exponent of an infinity and of a NaN has all bits set, and no other. */
FINITE_LOOP static uint32_t finite_largest(const float *v, size_t n)
{
    uint32_t most = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &v[i], sizeof(bits));
        bits &= FINITE_EXPONENT;
        most = bits > most ? bits : most;
    }
    return most;
}

bool co_grad_is_finite(const float *grad, size_t n)
{
    for (size_t i = 0; i < n; i += FINITE_BLOCK)
        if (finite_largest(grad + i, n - i < FINITE_BLOCK ? n - i : FINITE_BLOCK) ==
            FINITE_EXPONENT)
            return false;
    return true;
}
