/*
 * backends_test.h - what tests of kernels share: numbers to work on, and which loops this machine
 * can run.
 */
#ifndef CO_TESTS_BACKENDS_TEST_H
#define CO_TESTS_BACKENDS_TEST_H

#include "core/isa.h"
#include "core/mem.h"
#include "core/rng.h"

/* `n` numbers in (-1, 1), others for each `item`; the caller frees them. */
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

/* Of a list that begins with AVX-512's loops and AVX2's, how many this machine cannot run. */
static inline int count_too_new(void)
{
#ifdef CO_KERNELS_X86
    return !co_isa_has(CO_ISA_AVX512) + !co_isa_has(CO_ISA_AVX2);
#else
    return 0;
#endif
}

#endif
