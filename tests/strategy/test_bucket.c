/* test_bucket.c - bucket boundaries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "strategy/bucket.h"
#include "tensor/store.h"

static void bucket_size_is_rounded_to_whole_edges(void **state)
{
    (void)state;
    assert_int_equal(co_bucket_elements(1), 262144);
    assert_int_equal(co_bucket_elements(0.5), 131072);
    assert_int_equal(co_bucket_elements(0.0001), 64);
    assert_int_equal(co_bucket_elements(0.0005), 128); /* 131 floats */
    assert_int_equal(co_bucket_elements(4096), (size_t)1 << 30);
}

/* Full buckets of 64 elements, of 16 at both ends. */
static void bucket_bounds_equal_worked_ones(void **state)
{
    static const struct {
        size_t n, end[8];
    } cases[] = {
        {16, {16}},
        {32, {32}},
        {48, {16, 48}},
        {64, {16, 48, 64}},
        {96, {16, 80, 96}},
        {112, {16, 80, 112}},
        {160, {16, 80, 144, 160}},
        {1, {1}},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        size_t begin = 0, i = 0;

        for (; begin < cases[c].n; i++) {
            begin = co_bucket_end(begin, cases[c].n, 64);
            assert_int_equal(begin, cases[c].end[i]);
        }
        assert_int_equal(co_bucket_count(cases[c].n, 64), i);
    }
    assert_int_equal(co_bucket_count(0, 64), 0);
}

static void bucket_bounds_cover_any_store_once(void **state)
{
    (void)state;
    for (size_t full = 64; full <= 512; full += 64)
        for (size_t n = 16; n < 3000; n += 16) {
            const size_t edge = full / 4;
            size_t begin = 0;

            while (begin < n) {
                const size_t end = co_bucket_end(begin, n, full), size = end - begin;

                assert_true(end > begin && end <= n);
                assert_true(size <= full);
                assert_true(size >= edge || n < edge);
                assert_int_equal(end % CO_STORE_ALIGN, 0);
                if (n > 2 * edge && (begin == 0 || end == n))
                    assert_true(size <= 2 * edge);
                begin = end;
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bucket_size_is_rounded_to_whole_edges),
        cmocka_unit_test(bucket_bounds_equal_worked_ones),
        cmocka_unit_test(bucket_bounds_cover_any_store_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
