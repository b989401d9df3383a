/* test_tokenizer.c - words, merges, and the tokens of words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/bpe.h"
#include "text/bpe_train.h"
#include "text/words.h"

/* The text's words with | between them. */
static void assert_words(const char *text, size_t size, const char *want)
{
    char got[256];
    size_t used = 0;

    for (size_t at = 0, n; at < size; at += n) {
        n = co_word_next((const uint8_t *)text + at, size - at);
        assert_int_in_range(n, 1, size - at);
        memcpy(got + used, text + at, n);
        used += n;
        got[used++] = '|';
    }
    got[used] = '\0';
    assert_string_equal(got, want);
}

#define WORDS(text, want) assert_words(text, sizeof(text) - 1, want)

static void words_are_those_of_the_pattern(void **state)
{
    (void)state;
    WORDS("Hello world", "Hello| world|");
    WORDS("don't we'll 's 'S it''s", "don|'t| we|'ll| '|s| '|S| it|''|s|");
    WORDS("a  b   c", "a| | b|  | c|");
    WORDS("a\n\nb \n", "a|\n|\n|b| \n|");
    WORDS("x=12, 3.4!", "x|=|12|,| 3|.|4|!|");
    WORDS(" \xc2\xa0"
          "a",
          " |\xc2\xa0|a|"); /* no-break space */
    WORDS("na\xc3\xafve \xe4\xb8\xad", "na\xc3\xafve| \xe4\xb8\xad|");
    WORDS("\xc2\xb2\xc2\xbdz", "\xc2\xb2\xc2\xbd|z|"); /* numbers, not digits */
    WORDS("e\xcc\x81!", "e|\xcc\x81!|");               /* a mark is no letter */
    WORDS("a\xff\xc3 b", "a|\xff\xc3| b|");            /* no UTF-8 */
}

static void words_longer_than_the_limit_are_cut(void **state)
{
    const size_t size = CO_WORD_MAX + 100;
    uint8_t *text = malloc(size);

    (void)state;
    assert_non_null(text);
    memset(text, 'a', size);
    assert_int_equal(co_word_next(text, size), CO_WORD_MAX);
    memset(text, ' ', size);
    assert_int_equal(co_word_next(text, size), CO_WORD_MAX);
    free(text);
}

static void assert_tokens(co_bpe *bpe, const char *word, size_t want, const uint32_t *token)
{
    const uint32_t *got;
    size_t n;

    for (int again = 0; again < 2; again++) { /* computed, and kept */
        assert_int_equal(co_bpe_word(&got, &n, bpe, (const uint8_t *)word, strlen(word)), CO_OK);
        assert_int_equal(n, want);
        assert_memory_equal(got, token, n * sizeof(*got));
    }
}

static void bpe_merges_the_earliest_pair_first(void **state)
{
    static const char merges[] = "#version: 0.2\nb c\na b\nbc d\n\xc4\xa0 a\na a\n";
    co_bpe *bpe;

    (void)state;
    assert_int_equal(co_bpe_parse(&bpe, (const uint8_t *)merges, sizeof(merges) - 1, "m"), CO_OK);
    assert_int_equal(co_bpe_tokens(bpe), 261);
    assert_tokens(bpe, "abcd", 2, (const uint32_t[]){'a' - '!', 258});
    assert_tokens(bpe, "abab", 2, (const uint32_t[]){257, 257});
    assert_tokens(bpe, "aaa", 2, (const uint32_t[]){260, 'a' - '!'});
    assert_tokens(bpe, " ab", 2, (const uint32_t[]){220, 257});
    co_bpe_destroy(bpe);
}

static void bpe_tokens_of_the_same_bytes_are_one(void **state)
{
    static const char merges[] = "a a\naa a\na aa\nb b\n";
    co_bpe *bpe;

    (void)state;
    assert_int_equal(co_bpe_parse(&bpe, (const uint8_t *)merges, sizeof(merges) - 1, "m"), CO_OK);
    assert_int_equal(co_bpe_tokens(bpe), 259);
    assert_tokens(bpe, "bb", 1, (const uint32_t[]){258});
    co_bpe_destroy(bpe);
}

static void bpe_damaged_merges_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a b\nab\n", "m: line 2: not two tokens"},
        {"a  b\n", "m: line 1: not two tokens"},
        {"#version: 0.2\nab c\n", "m: line 2: a token that no merge before it makes"},
        {"a b\na b\n", "m: line 2: a merge that is there twice"},
        {"a \xe2\x82\xac\n", "m: line 1: a character of no byte"},
        {"a \xff\n", "m: line 1: a character of no byte"},
    };
    co_bpe *bpe;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text = cases[i].text;

        assert_int_equal(co_bpe_parse(&bpe, (const uint8_t *)text, strlen(text), "m"), CO_E_DATA);
        if (!strstr(co_error_message(), cases[i].message))
            fail_msg("'%s' is not in: %s", cases[i].message, co_error_message());
    }
}

static void bpe_training_takes_the_most_frequent_pairs(void **state)
{
    co_bpe_trainer *trainer;
    co_bpe *bpe;
    size_t n;

    (void)state;
    assert_int_equal(co_bpe_trainer_create(&trainer), CO_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(co_bpe_trainer_word(trainer, (const uint8_t *)"low", 3), CO_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(co_bpe_trainer_word(trainer, (const uint8_t *)"new", 3), CO_OK);
    assert_int_equal(co_bpe_trainer_word(trainer, (const uint8_t *)"xyz", 3), CO_OK);
    assert_int_equal(co_bpe_train(&bpe, trainer, 1000), CO_OK);
    assert_int_equal(co_bpe_tokens(bpe), 260); /* lo, low, ew, new; xy came once */
    assert_memory_equal(co_bpe_piece(bpe, &n, 256), "lo", 2);
    assert_memory_equal(co_bpe_piece(bpe, &n, 257), "low", 3);
    assert_memory_equal(co_bpe_piece(bpe, &n, 258), "ew", 2);
    assert_memory_equal(co_bpe_piece(bpe, &n, 259), "new", 3);
    co_bpe_destroy(bpe);
    co_bpe_trainer_destroy(trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_those_of_the_pattern),
        cmocka_unit_test(words_longer_than_the_limit_are_cut),
        cmocka_unit_test(bpe_merges_the_earliest_pair_first),
        cmocka_unit_test(bpe_tokens_of_the_same_bytes_are_one),
        cmocka_unit_test(bpe_damaged_merges_are_refused),
        cmocka_unit_test(bpe_training_takes_the_most_frequent_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
