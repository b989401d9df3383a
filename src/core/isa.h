/*
 * isa.h - which instructions of this CPU loops may use: the one place that asks the CPU.
 *
 * Levels are ordered; a CPU has all below its own that are of its architecture. COHORT_ISA=NAME in
 * the environment lowers the level of a process, for its own loops and oneDNN's alike: to try what
 * another machine would do.
 */
#ifndef CO_CORE_ISA_H
#define CO_CORE_ISA_H

#include <stdbool.h>

#include <cohort/status.h>

typedef enum co_isa {
    CO_ISA_BASE,        /* what every CPU of the architecture has */
    CO_ISA_NEON,        /* of ARM64 alone */
    CO_ISA_AVX2,        /* with FMA and F16C */
    CO_ISA_AVX512,      /* F, BW, DQ, VL */
    CO_ISA_AVX512_BF16, /* products of bf16 */
    CO_ISA_AMX,         /* tiles of bf16, which the system lets this process use */
    CO_ISA_LEVELS
} co_isa;

/* The level of this process: the CPU's, or a lower one that COHORT_ISA names. Determined by the
   first call. Any thread. */
co_isa co_isa_level(void);

static inline bool co_isa_has(co_isa level)
{
    const co_isa own = co_isa_level();

    return level <= own && (level != CO_ISA_NEON || own == CO_ISA_NEON);
}

/* Whether AVX-512's byte shuffles and products of bytes (VBMI, VNNI) may be used as well: not every
   CPU of a level has them. */
bool co_isa_has_bytes(void);

/* Whether products of bf16 by AVX-512 are faster than those of floats, where there are any. Intel's
   CPUs since Sapphire Rapids start one of 16 pairs every second cycle, and two of 16 floats in
   each. */
bool co_isa_multiplies_bf16(void);

/* Whether it computes SHA-256 (x86-64 with AVX2). */
bool co_isa_has_sha(void);

/* Whether COHORT_ISA limits the level. */
bool co_isa_is_limited(void);

/* CO_E_USAGE if COHORT_ISA is not the name of a level; it limits nothing then. A level above the
   CPU's, or of another architecture, has no effect. */
co_status co_isa_check(void);

/* "avx512_bf16", as COHORT_ISA takes it; "AVX-512 with bf16", for people. */
const char *co_isa_name(co_isa level);
const char *co_isa_title(co_isa level);

#endif
