/* direct_conv.c - which loops of direct_conv.h this process uses. */
#include "kernels/direct_conv/direct_conv.h"

#include "core/isa.h"

const direct_conv_loops *direct_conv_choose(void)
{
#ifdef CO_KERNELS_X86
    if (co_isa_has(CO_ISA_AVX512))
        return &direct_conv_loops_avx512;
    if (co_isa_has(CO_ISA_AVX2))
        return &direct_conv_loops_avx2;
#endif
    return &direct_conv_loops_basic;
}
