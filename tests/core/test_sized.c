/* test_sized.c - copies between versions of a struct that differ in size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/sized.h"

typedef struct older {
    int32_t a, b;
} older;

typedef struct known {
    int32_t a, b;
    int64_t c;
} known;

typedef struct newer {
    int32_t a, b;
    int64_t c, d;
} newer;

CO_SIZED_END(known, c);

static void sized_older_struct_gets_zeros(void **state)
{
    const older in = {1, 2};
    known out;

    (void)state;
    memset(&out, 0x5a, sizeof(out));
    assert_int_equal(CO_SIZED_READ(&out, &in, sizeof(in), known), CO_OK);
    assert_int_equal(out.a, 1);
    assert_int_equal(out.b, 2);
    assert_int_equal(out.c, 0);
}

static void sized_newer_struct_is_read_if_rest_is_zero(void **state)
{
    newer in = {1, 2, 3, 0};
    known out;

    (void)state;
    assert_int_equal(CO_SIZED_READ(&out, &in, sizeof(in), known), CO_OK);
    assert_int_equal(out.c, 3);
    for (size_t i = sizeof(out); i < sizeof(in); i++) {
        memset(&out, 0x5a, sizeof(out));
        ((unsigned char *)&in)[i] = 1;
        assert_int_equal(CO_SIZED_READ(&out, &in, sizeof(in), known), CO_E_UNSUPPORTED);
        assert_non_null(strstr(co_error_message(), "known: byte "));
        assert_non_null(strstr(co_error_message(), "sets a member of newer headers"));
        assert_int_equal(out.a, 0x5a5a5a5a);
        ((unsigned char *)&in)[i] = 0;
    }
}

static void sized_struct_without_size_is_refused(void **state)
{
    const known in = {1, 2, 3};
    known out;

    (void)state;
    assert_int_equal(CO_SIZED_READ(&out, &in, 0, known), CO_E_USAGE);
    assert_string_equal(co_error_message(), "known: of size 0; pass sizeof(known)");
    assert_int_equal(CO_SIZED_READ(&out, NULL, sizeof(in), known), CO_E_USAGE);
    assert_string_equal(co_error_message(), "known: NULL; pass one, if only &(known){0}");
}

static void sized_result_stays_in_the_callers_struct(void **state)
{
    const known in = {1, 2, 3};
    struct {
        older out;
        unsigned char guard[16], same[16];
    } small;
    newer large;

    (void)state;
    memset(&small, 0x5a, sizeof(small));
    memset(small.same, 0x5a, sizeof(small.same));
    co_sized_write(&small.out, sizeof(small.out), &in, sizeof(in));
    assert_int_equal(small.out.b, 2);
    assert_memory_equal(small.guard, small.same, sizeof(small.guard));
    memset(&large, 0x5a, sizeof(large));
    co_sized_write(&large, sizeof(large), &in, sizeof(in));
    assert_int_equal(large.c, 3);
    assert_int_equal(large.d, 0);
    co_sized_write(NULL, sizeof(large), &in, sizeof(in));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sized_older_struct_gets_zeros),
        cmocka_unit_test(sized_newer_struct_is_read_if_rest_is_zero),
        cmocka_unit_test(sized_struct_without_size_is_refused),
        cmocka_unit_test(sized_result_stays_in_the_callers_struct),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
