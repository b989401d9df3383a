/* vector.c - the loops of ext/vector.h in plain C, and the choice of a set of them for this CPU. */
#define VECTOR_TABLE co_vector_base
#define VECTOR_NAME  "plain C"
#define VECTOR_HALF  co_half_plain

#include "tensor/vector_impl.h"

#ifdef CO_VECTOR_X86
static const co_vector_ops *const vector_tables[CO_ISA_LEVELS] = {
    [CO_ISA_BASE] = &co_vector_base,     [CO_ISA_AVX2] = &co_vector_avx2,
    [CO_ISA_AVX512] = &co_vector_avx512, [CO_ISA_AVX512_BF16] = &co_vector_avx512,
    [CO_ISA_AMX] = &co_vector_avx512,
};
#else
/* Compilers make vectors of NEON of plain C. */
static const co_vector_ops *const vector_tables[CO_ISA_LEVELS] = {
    [CO_ISA_BASE] = &co_vector_base, [CO_ISA_NEON] = &co_vector_base};
#endif

const co_vector_ops *co_vector_of_level(co_isa level)
{
    return vector_tables[level];
}

const co_vector_ops *co_vector_host(void)
{
    return co_vector_of_level(co_isa_level());
}
