/* test_format.c - counts, times and sizes in readable form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "telemetry/format.h"

static void format_count_groups_digits(void **state)
{
    static const struct {
        uint64_t n;
        const char *want;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "1,000"},
                 {24310, "24,310"},
                 {123456, "123,456"},
                 {1234567, "1,234,567"},
                 {UINT64_MAX, "18,446,744,073,709,551,615"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(co_format_count(text, sizeof(text), cases[i].n), cases[i].want);
}

static void format_rate_has_three_digits(void **state)
{
    static const struct {
        double rate;
        const char *want;
    } cases[] = {{0, "0.00"},    {0.841, "0.84"},  {9.996, "10.0"},     {26.34, "26.3"},
                 {99.96, "100"}, {999.6, "1,000"}, {24310.4, "24,310"}, {-1, "-"},
                 {NAN, "-"},     {INFINITY, "-"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(co_format_rate(text, sizeof(text), cases[i].rate), cases[i].want);
}

static void format_seconds_choose_their_unit(void **state)
{
    static const struct {
        double seconds;
        const char *want;
    } cases[] = {{0, "0.00 s"},        {0.841, "0.84 s"},   {0.996, "1.0 s"},
                 {4.94, "4.9 s"},      {9.96, "10 s"},      {59.4, "59 s"},
                 {59.6, "1 min 00 s"}, {200, "3 min 20 s"}, {3599.6, "1 h 00 min"},
                 {7500, "2 h 05 min"}, {-1, "-"},           {NAN, "-"},
                 {INFINITY, "-"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(co_format_seconds(text, sizeof(text), cases[i].seconds), cases[i].want);
}

static void format_bytes_choose_their_unit(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *want;
    } cases[] = {{0, "0 B"},          {1023, "1023 B"},         {1024, "1.00 KiB"},
                 {85197, "83.2 KiB"}, {1610612736, "1.50 GiB"}, {UINT64_MAX, "16.0 EiB"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(co_format_bytes(text, sizeof(text), cases[i].bytes), cases[i].want);
}

static void format_small_buffer_cuts_text(void **state)
{
    char text[6];

    (void)state;
    assert_string_equal(co_format_count(text, sizeof(text), 1234567), "1,234");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_count_groups_digits),
        cmocka_unit_test(format_rate_has_three_digits),
        cmocka_unit_test(format_seconds_choose_their_unit),
        cmocka_unit_test(format_bytes_choose_their_unit),
        cmocka_unit_test(format_small_buffer_cuts_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
