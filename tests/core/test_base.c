/* test_base.c - status, types, memory, arena, clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <cohort/types.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/thread.h"

CO_API const char *__asan_default_options(void);

/* Makes the sanitizer's allocator return NULL for impossible sizes, too. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void status_exit_codes_equal_documentation(void **state)
{
    static const struct {
        co_status status;
        int code;
    } codes[] = {
        {CO_OK, 0},        {CO_E_USAGE, 2},    {CO_E_DATA, 3},          {CO_E_PEER, 4},
        {CO_E_TIMEOUT, 4}, {CO_E_MISMATCH, 4}, {CO_E_INTERRUPTED, 130}, {CO_E_TERMINATED, 143},
        {CO_E_IO, 1},      {CO_E_NOMEM, 1},    {CO_E_UNSUPPORTED, 1},   {CO_E_FAILED, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        assert_int_equal(co_exit_code(codes[i].status), codes[i].code);
}

static void error_any_message_is_one_bounded_line(void **state)
{
    char longer[3000];

    (void)state;
    assert_int_equal(co_fail(CO_E_DATA, "%s: %d", "x.idx", 7), CO_E_DATA);
    assert_string_equal(co_error_message(), "x.idx: 7");
    assert_int_equal(co_fail(CO_E_IO, "y: %s", co_error_message()), CO_E_IO);
    assert_string_equal(co_error_message(), "y: x.idx: 7");
    assert_int_equal(co_error_status(), CO_E_IO);
    co_fail(CO_E_DATA, "a%sb", "\n\r\t\x1b[31m\x7f");
    assert_string_equal(co_error_message(), "a\\n\\r\\t\\x1b[31m\\x7fb");
    co_fail(CO_E_DATA, "h\xc3\xa4");
    assert_string_equal(co_error_message(), "h\xc3\xa4");
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    co_fail(CO_E_DATA, "%s", longer);
    assert_int_equal(strlen(co_error_message()), 1999);
}

static void *fail_elsewhere(void *arg)
{
    *(bool *)arg = co_error_message()[0] == '\0';
    co_fail(CO_E_FAILED, "elsewhere");
    return NULL;
}

static void error_message_is_per_thread(void **state)
{
    bool empty = false;
    pthread_t thread;

    (void)state;
    co_fail(CO_E_FAILED, "here");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &empty), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(empty);
    assert_string_equal(co_error_message(), "here");
}

static co_status try_once(co_status first, int *reached)
{
    CO_TRY(first);
    *reached += 1;
    return CO_OK;
}

static void try_failed_call_returns_its_status(void **state)
{
    int reached = 0;

    (void)state;
    assert_int_equal(try_once(CO_E_PEER, &reached), CO_E_PEER);
    assert_int_equal(try_once(CO_OK, &reached), CO_OK);
    assert_int_equal(reached, 1);
}

static void dtype_and_shape_give_names_and_sizes(void **state)
{
    static const struct {
        const char *name;
        size_t size;
    } types[CO_DTYPE_COUNT] = {{"f32", 4}, {"f64", 8},  {"i32", 4}, {"i64", 8},
                               {"u8", 1},  {"bf16", 2}, {"f16", 2}};
    const co_shape image = {4, {64, 1, 28, 28}}, scalar = {0, {0}}, row = {1, {64}};
    const co_shape empty = {2, {0, 5}};
    char text[32], cut[6];

    (void)state;
    for (int i = 0; i < CO_DTYPE_COUNT; i++) {
        assert_string_equal(co_dtype_name((co_dtype)i), types[i].name);
        assert_int_equal(co_dtype_size((co_dtype)i), types[i].size);
    }
    assert_int_equal(co_dtype_size(CO_DTYPE_COUNT), 0);
    assert_string_equal(co_dtype_name((co_dtype)-1), "unknown");
    assert_int_equal(co_shape_count(&image), 64 * 28 * 28);
    assert_int_equal(co_shape_count(&scalar), 1);
    assert_int_equal(co_shape_count(&empty), 0);
    assert_string_equal(co_shape_format(text, sizeof(text), &image), "(64, 1, 28, 28)");
    assert_string_equal(co_shape_format(text, sizeof(text), &scalar), "()");
    assert_string_equal(co_shape_format(cut, sizeof(cut), &image), "(64, ");
    assert_true(co_shape_equal(&image, &image));
    assert_false(co_shape_equal(&image, &row));
    assert_false(co_shape_equal(&row, &(co_shape){1, {63}}));
}

static void mem_allocation_is_zeroed_and_aligned(void **state)
{
    static const size_t large = (size_t)5 << 20;
    unsigned char *bytes = co_calloc(3, 5), *more;
    char *copy = co_strdup("text"), *none;

    (void)state;
    assert_non_null(bytes);
    for (int i = 0; i < 15; i++)
        assert_int_equal(bytes[i], 0);
    bytes[14] = 9;
    more = co_realloc(bytes, 100, 1);
    assert_non_null(more);
    assert_int_equal(more[14], 9);
    co_free(more);
    assert_string_equal(copy, "text");
    co_free(copy);
    none = co_calloc(0, 8);
    assert_non_null(none); /* NULL always means failure */
    co_free(none);
    co_free(NULL);
    for (size_t n = 1; n <= large; n = n * 37 + 1) {
        more = co_calloc_aligned(n, 1);
        assert_non_null(more);
        assert_int_equal((uintptr_t)more % 64, 0);
        assert_int_equal(more[0] | more[n / 2] | more[n - 1], 0);
        co_free(more);
    }
}

static void mem_impossible_size_fails(void **state)
{
    (void)state;
    co_fail(CO_E_FAILED, "before");
    assert_null(co_calloc(SIZE_MAX, 2));
    assert_non_null(strstr(co_error_message(), "out of memory"));
    assert_null(co_calloc(SIZE_MAX / 2, 1));
    assert_null(co_calloc((size_t)1 << 33, (size_t)1 << 33));
    assert_null(co_calloc_aligned((size_t)1 << 33, (size_t)1 << 33));
    assert_null(co_calloc_aligned(SIZE_MAX, 1));
    assert_non_null(strstr(co_error_message(), "asked for at least 18446744073709551615 bytes"));
    assert_null(co_calloc_aligned(SIZE_MAX - 64, 1));
    assert_non_null(strstr(co_error_message(), "asked for 18446744073709551551 bytes"));
    assert_null(co_realloc(NULL, SIZE_MAX, SIZE_MAX));
}

static void mem_fail_at_k_fails_kth_allocation(void **state)
{
    void *first, *third;

    (void)state;
    co_mem_fail_at(2);
    first = co_calloc(1, 1);
    assert_non_null(first);
    assert_null(co_strdup("x"));
    third = co_calloc_aligned(1, 1);
    assert_non_null(third);
    assert_int_equal(co_mem_count(), 3);
    co_mem_fail_at(0);
    assert_int_equal(co_mem_count(), 0);
    co_free(first);
    co_free(third);
}

static void arena_many_allocations_keep_their_content(void **state)
{
    static const size_t sizes[] = {1, 15, 16, 17, 0, 4000, 16384, 16385, 70000, 3};
    co_arena *arena = co_arena_create();
    unsigned char *block[200];
    char *text;

    (void)state;
    assert_non_null(arena);
    for (int i = 0; i < 200; i++) {
        size_t n = sizes[i % 10];

        block[i] = co_arena_alloc(arena, n, 1);
        assert_non_null(block[i]);
        assert_int_equal((uintptr_t)block[i] % 16, 0);
        for (size_t b = 0; b < n; b++)
            assert_int_equal(block[i][b], 0);
        memset(block[i], i, n);
    }
    for (int i = 0; i < 200; i++)
        for (size_t b = 0; b < sizes[i % 10]; b++)
            assert_int_equal(block[i][b], i);
    text = co_arena_printf(arena, "%s.%d", "conv", 12);
    assert_string_equal(text, "conv.12");
    assert_string_equal(co_arena_strdup(arena, text), "conv.12");
    assert_null(co_arena_alloc(arena, SIZE_MAX, 2));
    assert_null(co_arena_alloc(arena, SIZE_MAX - 8, 1));
    assert_null(co_arena_alloc(arena, (size_t)1 << 62, 1));
    assert_non_null(strstr(co_error_message(), "out of memory"));
    co_arena_destroy(arena);
    co_arena_destroy(NULL);
}

static void arena_failed_allocation_gives_null(void **state)
{
    co_arena *arena;

    (void)state;
    co_mem_fail_at(1);
    assert_null(co_arena_create());
    co_mem_fail_at(0);
    arena = co_arena_create();
    co_mem_fail_at(1);
    assert_null(co_arena_printf(arena, "%d", 5));
    co_mem_fail_at(1);
    assert_null(co_arena_strdup(arena, "x"));
    co_mem_fail_at(0);
    assert_string_equal(co_arena_strdup(arena, "x"), "x");
    co_arena_destroy(arena);
}

static void clock_after_sleep_has_advanced(void **state)
{
    uint64_t start = co_clock_ns(), end;

    (void)state;
    co_clock_sleep_us(2000);
    end = co_clock_ns();
    assert_true(end - start >= 2000000);
    assert_true(co_clock_process_start_ns() <= start);
    assert_true(co_clock_seconds(start, start + 1500000000) > 1.499999);
}

static void thread_cores_and_binding_are_known(void **state)
{
    char binding[256];

    (void)state;
    assert_true(co_thread_cores() >= 1);
    co_thread_binding(binding, sizeof(binding));
    assert_true(binding[0] >= '0' && binding[0] <= '9');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_exit_codes_equal_documentation),
        cmocka_unit_test(error_any_message_is_one_bounded_line),
        cmocka_unit_test(error_message_is_per_thread),
        cmocka_unit_test(try_failed_call_returns_its_status),
        cmocka_unit_test(dtype_and_shape_give_names_and_sizes),
        cmocka_unit_test(mem_allocation_is_zeroed_and_aligned),
        cmocka_unit_test(mem_impossible_size_fails),
        cmocka_unit_test(mem_fail_at_k_fails_kth_allocation),
        cmocka_unit_test(arena_many_allocations_keep_their_content),
        cmocka_unit_test(arena_failed_allocation_gives_null),
        cmocka_unit_test(clock_after_sleep_has_advanced),
        cmocka_unit_test(thread_cores_and_binding_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
