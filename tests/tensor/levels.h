/* levels.h - the co_vector_ops of this machine, one for each supported instruction set. */
#ifndef CO_TESTS_TENSOR_LEVELS_H
#define CO_TESTS_TENSOR_LEVELS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "tensor/vector.h"

/* Returns how many there are. */
static inline size_t levels_list(const co_vector_ops *out[CO_ISA_LEVELS])
{
    size_t n = 0;

    for (co_isa level = CO_ISA_BASE; level < CO_ISA_LEVELS; level++) {
        const co_vector_ops *vector = co_isa_has(level) ? co_vector_of_level(level) : NULL;

        if (vector && (n == 0 || out[n - 1] != vector))
            out[n++] = vector;
    }
    return n;
}

/* Normally distributed values. */
static inline void levels_fill(float *x, size_t n, uint64_t seed)
{
    const co_rng rng = {.seed = seed, .stream = CO_RNG_TEST};

    co_rng_normal(x, &rng, 0, n);
}

#endif
