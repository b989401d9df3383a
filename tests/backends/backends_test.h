/*
 * backends_test.h - shared by tests of kernels: input values.
 */
#ifndef CO_TESTS_BACKENDS_TEST_H
#define CO_TESTS_BACKENDS_TEST_H

#include "core/isa.h"
#include "core/mem.h"
#include "core/rng.h"

/* `n` values in (-1, 1), different for each `item`; free with co_free. */
static inline float *make_numbers(uint32_t item, int64_t n)
{
    const co_rng rng = {.seed = 1, .stream = CO_RNG_TEST, .item = item};
    float *v = co_calloc_aligned((size_t)n, sizeof(*v));

    assert_non_null(v);
    co_rng_uniform(v, &rng, 0, (uint64_t)n);
    for (int64_t i = 0; i < n; i++)
        v[i] = 2 * v[i] - 1;
    return v;
}

#endif
