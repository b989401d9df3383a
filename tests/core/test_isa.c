/* test_isa.c - instruction-set levels with and without the environment's limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/isa.h"

/* The level in COHORT_ISA; CO_ISA_LEVELS if it is unset or names none. */
static int named(void)
{
    const char *name = getenv("COHORT_ISA");
    int level = 0;

    while (name && level < CO_ISA_LEVELS && strcmp(name, co_isa_name((co_isa)level)) != 0)
        level++;
    return name ? level : CO_ISA_LEVELS;
}

static bool is_of_this_architecture(int level)
{
#ifdef __aarch64__
    return level <= CO_ISA_NEON;
#else
    return level != CO_ISA_NEON;
#endif
}

/* The same, without levels of another architecture: they limit nothing. */
static int limit(void)
{
    return is_of_this_architecture(named()) ? named() : CO_ISA_LEVELS;
}

static void isa_limit_lowers_level(void **state)
{
    (void)state;
    assert_true((int)co_isa_level() <= limit());
    assert_true(co_isa_has(CO_ISA_BASE));
    for (int level = 0; level < CO_ISA_LEVELS; level++)
        assert_int_equal(co_isa_has((co_isa)level),
                         is_of_this_architecture(level) && level <= (int)co_isa_level());
    if (co_isa_is_limited())
        assert_int_equal(co_isa_level(), limit());
    if (limit() == CO_ISA_BASE)
        assert_false(co_isa_has_bytes());
}

#if defined(__aarch64__)
static void isa_level_of_arm64_is_neon(void **state)
{
    (void)state;
    assert_int_equal(co_isa_level(), limit() == CO_ISA_BASE ? CO_ISA_BASE : CO_ISA_NEON);
}
#elif defined(__x86_64__)
/* No level is reported that the compiler's own check denies. */
static void isa_level_agrees_with_compiler(void **state)
{
    (void)state;
    __builtin_cpu_init();
    if (co_isa_has(CO_ISA_AVX2))
        assert_true(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    if (co_isa_has(CO_ISA_AVX512))
        assert_true(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"));
    if (co_isa_has(CO_ISA_AVX512_BF16))
        assert_true(__builtin_cpu_supports("avx512bf16"));
    if (limit() > CO_ISA_BASE && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        assert_true(co_isa_has(CO_ISA_AVX2));
}
#endif

static void isa_unknown_limit_is_refused(void **state)
{
    const char *name = getenv("COHORT_ISA");

    (void)state;
    if (!name || named() < CO_ISA_LEVELS) {
        assert_int_equal(co_isa_check(), CO_OK);
        return;
    }
    assert_int_equal(co_isa_check(), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), name));
    assert_non_null(strstr(co_error_message(), co_isa_name(CO_ISA_AVX512_BF16)));
    assert_false(co_isa_is_limited());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(isa_limit_lowers_level),
#if defined(__aarch64__)
        cmocka_unit_test(isa_level_of_arm64_is_neon),
#elif defined(__x86_64__)
        cmocka_unit_test(isa_level_agrees_with_compiler),
#endif
        cmocka_unit_test(isa_unknown_limit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
