/* test_text.c - untrusted text is escaped and cut before it reaches a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

static void assert_shown(const char *text, const char *shown)
{
    char again[256];

    assert_string_equal(CO_SHOW(text), shown);
    assert_string_equal(co_text_show(again, sizeof(again), shown), shown);
}

static void text_printable_is_unchanged(void **state)
{
    (void)state;
    assert_shown("", "");
    assert_shown("T-shirt/top 100% \\ ~", "T-shirt/top 100% \\ ~");
    /* of 2, 3 and 4 bytes */
    assert_shown("K\xc3\xa4se \xe7\x8a\xac", "K\xc3\xa4se \xe7\x8a\xac");
    assert_shown("\xf0\x9f\x90\x88", "\xf0\x9f\x90\x88");
}

static void text_control_characters_are_escaped(void **state)
{
    (void)state;
    assert_shown("a\nb\tc\rd", "a\\nb\\tc\\rd");
    assert_shown("\x1b[31mred\x1b[0m\x07\x7f", "\\x1b[31mred\\x1b[0m\\x07\\x7f");
    assert_shown("\xc2\x9b"
                 "31m",
                 "\\u009b31m"); /* CSI as one character */
    assert_shown("exe\xe2\x80\xae"
                 "gpj\xe2\x80\xac",
                 "exe\\u202egpj\\u202c"); /* right-to-left override */
    assert_shown("a\xe2\x80\xa8"
                 "b\xe2\x80\x8b"
                 "c",
                 "a\\u2028b\\u200bc");            /* line separator, zero-width space */
    assert_shown("\xf3\xa0\x80\x81", "\\ue0001"); /* a tag */
}

static void text_for_json_is_escaped_if_no_utf8(void **state)
{
    const char *text = "a\nb\xc3\xa4\xe2\x80\xae";

    (void)state;
    assert_ptr_equal(CO_UTF8(text), text);
    assert_string_equal(CO_UTF8(""), "");
    assert_string_equal(CO_UTF8("a\n\xff"), "a\\n\\xff");
    assert_string_equal(CO_UTF8("\xc3"), "\\xc3");
}

static void text_invalid_utf8_is_escaped(void **state)
{
    (void)state;
    assert_shown("\xff\xfe", "\\xff\\xfe");
    assert_shown("\xc3", "\\xc3"); /* truncated */
    assert_shown("\xe7\x8a", "\\xe7\\x8a");
    assert_shown("\xc0\x8a", "\\xc0\\x8a");                   /* overlong line feed */
    assert_shown("\xe0\x82\x9b", "\\xe0\\x82\\x9b");          /* overlong */
    assert_shown("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* half of a surrogate pair */
    assert_shown("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
    assert_shown("\xc3(", "\\xc3(");
}

/* For any buffer size: whole pieces and a terminator. */
static void text_too_long_is_cut(void **state)
{
    static const char text[] = "ab\xe7\x8a\xac\nK\x1b"
                               "cdefgh";
    const char *whole = CO_SHOW(text);

    (void)state;
    for (size_t size = 4; size < 40; size++) {
        char *out = malloc(size);
        size_t n;

        assert_non_null(out);
        assert_ptr_equal(co_text_show(out, size, text), out);
        n = strlen(out);
        assert_true(n < size);
        if (size > strlen(whole)) {
            assert_string_equal(out, whole);
        } else {
            assert_string_equal(out + n - 3, "...");
            assert_memory_equal(out, whole, n - 3);
        }
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_printable_is_unchanged),
        cmocka_unit_test(text_control_characters_are_escaped),
        cmocka_unit_test(text_for_json_is_escaped_if_no_utf8),
        cmocka_unit_test(text_invalid_utf8_is_escaped),
        cmocka_unit_test(text_too_long_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
