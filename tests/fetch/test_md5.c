/* test_md5.c - MD5 of the texts in RFC 1321, in pieces of any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "fetch/md5.h"

static void md5_texts_of_the_rfc_have_its_digests(void **state)
{
    static const char *const cases[][2] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t piece = 1; piece <= 80; piece++) {
            const size_t n = strlen(cases[i][0]);
            char digest[33];
            co_md5 hash;

            co_md5_begin(&hash);
            for (size_t at = 0; at < n; at += piece)
                co_md5_add(&hash, cases[i][0] + at, n - at < piece ? n - at : piece);
            co_md5_end(digest, &hash);
            assert_string_equal(digest, cases[i][1]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(md5_texts_of_the_rfc_have_its_digests)};

    return cmocka_run_group_tests_name("fetch_md5", tests, NULL, NULL);
}
