/* test_levels.c - into which groups hosts are joined. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "comm/mpi/levels.h"

static void levels_are(int hosts, int most, int n, const int *factor)
{
    co_levels levels;

    co_levels_find(&levels, hosts, most);
    assert_int_equal(levels.n, n);
    for (int k = 0; k < n; k++)
        assert_int_equal(levels.factor[k], factor[k]);
}

#define LEVELS(hosts, most, ...)                                                                   \
    do {                                                                                           \
        const int factor[] = {__VA_ARGS__};                                                        \
        levels_are(hosts, most, (int)(sizeof(factor) / sizeof(*factor)), factor);                  \
    } while (0)

static void levels_of_few_hosts_are_one(void **state)
{
    (void)state;
    for (int hosts = 1; hosts < 20; hosts++)
        LEVELS(hosts, 0, hosts);
}

static void levels_of_many_hosts_take_least_time(void **state)
{
    (void)state;
    LEVELS(20, 0, 5, 4);
    LEVELS(64, 0, 8, 8);
    LEVELS(100, 0, 10, 10);
    LEVELS(1024, 0, 16, 8, 8);
    LEVELS(16384, 0, 8, 8, 8, 8, 4);
}

static void levels_of_prime_hosts_are_one(void **state)
{
    (void)state;
    LEVELS(97, 0, 97);
    LEVELS(2 * 1009, 0, 1009, 2);
    LEVELS(97, 8, 97);
}

static void levels_with_limit_are_fewest(void **state)
{
    (void)state;
    LEVELS(8, 2, 2, 2, 2);
    LEVELS(12, 4, 4, 3);
    LEVELS(64, 4, 4, 4, 4);
    LEVELS(1024, 1024, 1024);
}

/* Every number is the product of its factors, which do not grow. */
static void levels_of_any_hosts_cover_them(void **state)
{
    (void)state;
    for (int hosts = 1; hosts <= 5000; hosts++) {
        co_levels levels;
        int product = 1;

        co_levels_find(&levels, hosts, 0);
        for (int k = 0; k < levels.n; k++) {
            assert_true(k == 0 || levels.factor[k] <= levels.factor[k - 1]);
            product *= levels.factor[k];
        }
        assert_int_equal(product, hosts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_of_few_hosts_are_one),
        cmocka_unit_test(levels_of_many_hosts_take_least_time),
        cmocka_unit_test(levels_of_prime_hosts_are_one),
        cmocka_unit_test(levels_with_limit_are_fewest),
        cmocka_unit_test(levels_of_any_hosts_cover_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
