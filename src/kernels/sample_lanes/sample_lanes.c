/* sample_lanes.c - chooses the loops for this CPU's instruction set. */
#include "kernels/sample_lanes/sample_lanes.h"

#include "core/isa.h"

const lanes_loops *const *lanes_find_all(void)
{
    static const lanes_loops *const all[] = {
#ifdef CO_KERNELS_X86
        &lanes_loops_avx512,
        &lanes_loops_avx2,
#endif
        &lanes_loops_basic,
        NULL,
    };

#ifdef CO_KERNELS_X86
    return all + !co_isa_has(CO_ISA_AVX512) + !co_isa_has(CO_ISA_AVX2);
#else
    return all;
#endif
}

const lanes_loops *lanes_choose(void)
{
    return *lanes_find_all();
}
