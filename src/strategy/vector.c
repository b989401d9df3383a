/* vector.c - the loops of vector.h in plain C, and which set of them this CPU is given. */
#define VECTOR_TABLE co_vector_plain
#define VECTOR_NAME  "plain C"

#include "core/isa.h"
#include "strategy/vector_impl.h"

#ifdef CO_VECTOR_X86
static const co_vector_loops *const vector_sets[] = {&co_vector_avx512, &co_vector_avx2,
                                                     &co_vector_plain};

/* The first that this CPU runs. */
static size_t vector_best(void)
{
    return (size_t)!co_isa_has(CO_ISA_AVX512) + !co_isa_has(CO_ISA_AVX2);
}
#else
static const co_vector_loops *const vector_sets[] = {&co_vector_plain};

static size_t vector_best(void)
{
    return 0;
}
#endif

const co_vector_loops *const *co_vector_loops_of_cpu(size_t *n)
{
    const size_t best = vector_best();

    *n = sizeof(vector_sets) / sizeof(vector_sets[0]) - best;
    return vector_sets + best;
}

const co_vector_loops *co_vector(void)
{
    return vector_sets[vector_best()];
}
