/* test_address.c - which addresses of data are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "fetch/range.h"

static void address_with_secrets_is_refused(void **state)
{
    static const char *const wrong[] = {"http://user:secret@host/set",
                                        "http://host/set?key=secret",
                                        "http://host/set#x",
                                        "http://",
                                        "http://host/a b",
                                        "https:///set"};

    (void)state;
    assert_true(co_range_is_address("https://host/set"));
    assert_false(co_range_is_address("file:///etc"));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(co_range_check_address(wrong[i]), CO_E_USAGE);
    assert_int_equal(co_range_check_address(wrong[0]), CO_E_USAGE);
    assert_null(strstr(co_error_message(), "secret"));
    assert_int_equal(co_range_check_address("http://host:80/a-b/%20c@2"), CO_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(address_with_secrets_is_refused)};

    return cmocka_run_group_tests_name("fetch_address", tests, NULL, NULL);
}
