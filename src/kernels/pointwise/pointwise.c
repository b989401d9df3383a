/* pointwise.c - which loops of pointwise.h this process uses. */
#include "kernels/pointwise/pointwise.h"

#include "core/isa.h"

const pointwise_loops *pointwise_choose(void)
{
#ifdef CO_KERNELS_X86
    if (co_isa_has(CO_ISA_AVX512))
        return &pointwise_loops_avx512;
    if (co_isa_has(CO_ISA_AVX2))
        return &pointwise_loops_avx2;
#endif
    return &pointwise_loops_basic;
}
