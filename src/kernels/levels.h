/*
 * levels.h - for loops that are compiled once for each level of instructions: their tables, whose
 * names end in that of the level (core/isa.h), and the choice among them.
 */
#ifndef CO_KERNELS_LEVELS_H
#define CO_KERNELS_LEVELS_H

#include "core/isa.h"

/*
 *   KERNELS_DECLARE(type, tables)       declares the tables of all levels
 *   KERNELS_LIST(tables, ...)           their addresses, widest vectors first, then the rest
 *   KERNELS_CHOOSE(tables, otherwise)   the widest that this process may use
 *   KERNELS_LACK                        why there may be none
 */
#if defined(CO_KERNELS_X86)
#define KERNELS_DECLARE(type, tables) extern const type tables##_avx2, tables##_avx512
#define KERNELS_LIST(tables, ...)     &tables##_avx512, &tables##_avx2, __VA_ARGS__
#define KERNELS_CHOOSE(tables, otherwise)                                                          \
    (co_isa_has(CO_ISA_AVX512) ? &tables##_avx512                                                  \
     : co_isa_has(CO_ISA_AVX2) ? &tables##_avx2                                                    \
                               : (otherwise))
#define KERNELS_LACK "this CPU has no AVX2"
#elif defined(CO_KERNELS_NEON)
#define KERNELS_DECLARE(type, tables)     extern const type tables##_neon
#define KERNELS_LIST(tables, ...)         &tables##_neon, __VA_ARGS__
#define KERNELS_CHOOSE(tables, otherwise) (co_isa_has(CO_ISA_NEON) ? &tables##_neon : (otherwise))
#define KERNELS_LACK                      "this CPU has no NEON"
#else
#define KERNELS_DECLARE(type, tables)     extern const type tables##_basic
#define KERNELS_LIST(tables, ...)         __VA_ARGS__
#define KERNELS_CHOOSE(tables, otherwise) (otherwise)
#define KERNELS_LACK                      "there are no loops in vectors for this kind of CPU"
#endif

/* How many of KERNELS_LIST this process may not use: the first ones. */
static inline int kernels_too_new(void)
{
#if defined(CO_KERNELS_X86)
    return !co_isa_has(CO_ISA_AVX512) + !co_isa_has(CO_ISA_AVX2);
#elif defined(CO_KERNELS_NEON)
    return !co_isa_has(CO_ISA_NEON);
#else
    return 0;
#endif
}

#endif
