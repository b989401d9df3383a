/* softmax.c - which loops of softmax.h this process uses. */
#include "kernels/softmax/softmax.h"

#include "core/isa.h"

const softmax_loops *softmax_choose(void)
{
#ifdef CO_KERNELS_X86
    if (co_isa_has(CO_ISA_AVX512))
        return &softmax_loops_avx512;
    if (co_isa_has(CO_ISA_AVX2))
        return &softmax_loops_avx2;
#endif
    return &softmax_loops_basic;
}
