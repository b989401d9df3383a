/*
 * planted.c - planted SKIPPED PASSED FAILED: the given numbers of tests with these results, for
 * check_planted.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_TESTS 512

static void planted_test_skips(void **state)
{
    (void)state;
    print_message("skipped: no <device> here\n");
    skip();
}

static void planted_test_passes(void **state)
{
    (void)state;
}

static void planted_test_fails(void **state)
{
    (void)state;
    fail();
}

int main(int argc, char **argv)
{
    static const CMUnitTestFunction kinds[] = {planted_test_skips, planted_test_passes,
                                               planted_test_fails};
    static const char *const names[] = {"planted_test_skips", "planted_test_passes",
                                        "planted_test_fails"};
    static struct CMUnitTest tests[MAX_TESTS];
    size_t n = 0;

    for (int k = 0; k < 3 && k + 1 < argc; k++)
        for (int i = 0; i < atoi(argv[k + 1]) && n < MAX_TESTS; i++)
            tests[n++] = (struct CMUnitTest){.name = names[k], .test_func = kinds[k]};
    return _cmocka_run_group_tests("planted", tests, n, NULL, NULL);
}
