/* pool.c - which loops of pool.h this process uses. */
#include "kernels/pool/pool.h"

#include "core/isa.h"

const pool_loops *pool_choose(void)
{
#ifdef CO_KERNELS_X86
    if (co_isa_has(CO_ISA_AVX512))
        return &pool_loops_avx512;
    if (co_isa_has(CO_ISA_AVX2))
        return &pool_loops_avx2;
#endif
    return &pool_loops_basic;
}
