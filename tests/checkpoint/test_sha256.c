/*
 * test_sha256.c - the examples of FIPS 180-4 with any division of the input, and fingerprints of
 * tensors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <cohort/safetensors.h>

#include "core/sha256.h"

/* Hash of `text` repeated `times` times, in parts of at most `part` bytes. */
static void sha256_text(char out[65], const char *text, size_t part, int times)
{
    co_sha256 hash;

    co_sha256_begin(&hash);
    for (int i = 0; i < times; i++)
        for (size_t at = 0, left = strlen(text); left > 0;) {
            size_t n = left < part ? left : part;

            co_sha256_add(&hash, text + at, n);
            at += n;
            left -= n;
        }
    co_sha256_end(out, &hash);
}

static void sha256_published_examples_match(void **state)
{
    static const struct {
        const char *text;
        int times;
        const char *hash;
    } examples[] = {
        {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    char out[65];

    (void)state;
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
        for (size_t part = 1; part < 70; part += 17) {
            sha256_text(out, examples[i].text, part, examples[i].times);
            assert_string_equal(out, examples[i].hash);
        }
}

/* Lengths around a block's end, where padding takes another block; compared with hashing byte by
   byte. */
static void sha256_any_split_gives_same_digest(void **state)
{
    char text[200], one[65], whole[65];

    (void)state;
    for (size_t n = 0; n < sizeof(text); n++) {
        memset(text, 0, sizeof(text));
        memset(text, 'x', n);
        sha256_text(one, text, 1, 1);
        sha256_text(whole, text, sizeof(text), 1);
        assert_string_equal(one, whole);
    }
}

static void sha256_of_tensors_is_in_name_order(void **state)
{
    const co_named_tensor tensors[] = {
        {.name = "c", .dtype = CO_U8, .data = "c", .bytes = 1},
        {.name = "a", .dtype = CO_U8, .data = "a", .bytes = 1},
        {.name = "b.x", .dtype = CO_U8, .data = "", .bytes = 0},
        {.name = "b", .dtype = CO_U8, .data = "b", .bytes = 1},
    };
    char out[65], want[65];

    (void)state;
    sha256_text(want, "abc", 3, 1);
    co_safetensors_sha256(out, tensors, 4);
    assert_string_equal(out, want);
    sha256_text(want, "", 1, 1);
    co_safetensors_sha256(out, NULL, 0);
    assert_string_equal(out, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_published_examples_match),
        cmocka_unit_test(sha256_any_split_gives_same_digest),
        cmocka_unit_test(sha256_of_tensors_is_in_name_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
