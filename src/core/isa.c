/*
 * isa.c - the levels of instructions, and the level of this process.
 */
#include "core/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define ISA_LIMIT "COHORT_ISA"

static const struct {
    const char *name, *title;
} isa_levels[CO_ISA_LEVELS] = {
    [CO_ISA_BASE] = {"base", "baseline instructions"},
    [CO_ISA_NEON] = {"neon", "NEON"},
    [CO_ISA_AVX2] = {"avx2", "AVX2"},
    [CO_ISA_AVX512] = {"avx512", "AVX-512"},
    [CO_ISA_AVX512_BF16] = {"avx512_bf16", "AVX-512 with bf16"},
    [CO_ISA_AMX] = {"amx", "AVX-512 with bf16 and AMX"},
};

#if defined(__x86_64__)
/* Neither compiler knows these by name in every version that is supported. */
static bool isa_has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool isa_has_sha(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

/* An Intel CPU, but for the first that had BF16, Cooper Lake, which shares its model with older
   ones. */
static bool isa_has_slow_bf16(void)
{
    enum { FAMILY_6_MODEL_85 = 0x50650, MODEL = 0xffff0 };
    unsigned a, b, c, d;

    if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_INTEL_ebx || c != signature_INTEL_ecx ||
        d != signature_INTEL_edx)
        return false;
    return __get_cpuid(1, &a, &b, &c, &d) && (a & MODEL) != FAMILY_6_MODEL_85;
}

/* The CPU has tiles for bf16, and the system lets this process use them. */
static bool isa_has_amx(void)
{
#ifdef __linux__
    enum { TILE_BF16 = 22, TILE = 24, PERMIT = 0x1023 /* ARCH_REQ_XCOMP_PERM */, TILE_DATA = 18 };
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> TILE_BF16 & 1) && (d >> TILE & 1) &&
           syscall(SYS_arch_prctl, PERMIT, TILE_DATA) == 0;
#else
    return false;
#endif
}

static co_isa isa_ask_cpu(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !isa_has_f16c())
        return CO_ISA_BASE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return CO_ISA_AVX2;
    if (!__builtin_cpu_supports("avx512bf16"))
        return CO_ISA_AVX512;
    return isa_has_amx() ? CO_ISA_AMX : CO_ISA_AVX512_BF16;
}
#else
static bool isa_has_sha(void)
{
    return false;
}

static bool isa_has_slow_bf16(void)
{
    return false;
}

static co_isa isa_ask_cpu(void)
{
#if defined(__aarch64__)
    return CO_ISA_NEON;
#else
    return CO_ISA_BASE;
#endif
}
#endif

/* The level that COHORT_ISA names; CO_ISA_LEVELS if none. */
static co_isa isa_read_limit(void)
{
    const char *limit = getenv(ISA_LIMIT);
    int level = 0;

    while (level < CO_ISA_LEVELS && limit && strcmp(limit, isa_levels[level].name) != 0)
        level++;
    return limit ? (co_isa)level : CO_ISA_LEVELS;
}

/* Asking a CPU takes as long as thousands of products, on a virtual machine tens of thousands: the
   answer is kept, plus 1; higher bits say that it is limited, and what a level does not imply. */
enum {
    ISA_LIMITED = 1 << 8,
    ISA_SHA = 1 << 9,
    ISA_SLOW_BF16 = 1 << 10,
    ISA_LEVEL = ISA_LIMITED - 1
};

static int isa_ask(void)
{
    static atomic_int kept;
    int answer = atomic_load_explicit(&kept, memory_order_relaxed);

    if (answer == 0) {
        const co_isa cpu = isa_ask_cpu(), limit = isa_read_limit();

        answer =
            limit < cpu && limit != CO_ISA_NEON ? ((int)limit + 1) | ISA_LIMITED : (int)cpu + 1;
        answer |= isa_has_sha() ? ISA_SHA : 0;
        answer |= isa_has_slow_bf16() ? ISA_SLOW_BF16 : 0;
        atomic_store_explicit(&kept, answer, memory_order_relaxed);
    }
    return answer;
}

co_isa co_isa_level(void)
{
    return (co_isa)((isa_ask() & ISA_LEVEL) - 1);
}

bool co_isa_is_limited(void)
{
    return isa_ask() & ISA_LIMITED;
}

bool co_isa_has_bytes(void)
{
#if defined(__x86_64__)
    return co_isa_has(CO_ISA_AVX512) && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

bool co_isa_multiplies_bf16(void)
{
    return co_isa_has(CO_ISA_AVX512_BF16) && !(isa_ask() & ISA_SLOW_BF16);
}

bool co_isa_has_sha(void)
{
    return co_isa_has(CO_ISA_AVX2) && (isa_ask() & ISA_SHA);
}

co_status co_isa_check(void)
{
    const char *limit = getenv(ISA_LIMIT);

    if (!limit || isa_read_limit() < CO_ISA_LEVELS)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   ISA_LIMIT "=%s in the environment names no level of instructions; there are: "
                             "base, neon, avx2, avx512, avx512_bf16, amx",
                   limit);
}

const char *co_isa_name(co_isa level)
{
    return isa_levels[level].name;
}

const char *co_isa_title(co_isa level)
{
    return isa_levels[level].title;
}
