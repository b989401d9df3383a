/*
 * skips.c - the exit status of a cmocka program: 0 passed, 1 failed, 77 every test was skipped.
 *
 * cmocka counts skipped tests as passed and returns the number of failed tests: a multiple of 256
 * would be a success, and 77 a skip. Every test program is linked with this in place of cmocka's
 * two functions (the linker's --wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SKIPS_EXIT 77 /* SKIP_RETURN_CODE of every test */

static size_t skips_count;

void __real__skip(const char *file, int line);
void __wrap__skip(const char *file, int line);
int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
                                   CMFixtureFunction setup, CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
                                   CMFixtureFunction setup, CMFixtureFunction teardown);

void __wrap__skip(const char *file, int line)
{
    skips_count++;
    __real__skip(file, line);
}

int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
                                   CMFixtureFunction setup, CMFixtureFunction teardown)
{
    int failed;

    skips_count = 0;
    failed = __real__cmocka_run_group_tests(name, tests, n, setup, teardown);
    if (failed != 0)
        return 1;
    return n > 0 && skips_count == n ? SKIPS_EXIT : 0;
}
