/* test_vocab.c - tokenizers and the files that keep them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "folder.h"
#include "text/tokenizer.h"

#define TEXT "a \"quoted\" \\ text, na\xc3\xafve\n"

/* The pieces of the tokens of TEXT are TEXT again. */
static void assert_comes_back(co_tokenizer *tokenizer)
{
    uint8_t text[256], room[CO_UTF8_MAX];
    uint32_t *token;
    size_t n, used = 0;

    assert_int_equal(
        co_tokenizer_encode(&token, &n, tokenizer, (const uint8_t *)TEXT, strlen(TEXT)), CO_OK);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *piece;
        size_t size;

        assert_int_in_range(token[i], 0, co_tokenizer_tokens(tokenizer) - 1);
        piece = co_tokenizer_piece(&size, room, tokenizer, token[i]);
        assert_true(used + size <= sizeof(text));
        memcpy(text + used, piece, size);
        used += size;
    }
    assert_int_equal(used, strlen(TEXT));
    assert_memory_equal(text, TEXT, used);
    co_free(token);
}

static void assert_saved_is_equal(co_tokenizer *tokenizer, const char *name, uint32_t tokens)
{
    const char *path = folder_path(name);
    co_tokenizer again;

    assert_false(co_tokenizer_is_in(path));
    assert_int_equal(co_tokenizer_load(&again, path), CO_E_DATA);
    assert_int_equal(co_tokenizer_save(tokenizer, path), CO_OK);
    assert_true(co_tokenizer_is_in(path));
    assert_int_equal(co_tokenizer_load(&again, path), CO_OK);
    assert_int_equal(co_tokenizer_tokens(&again), tokens);
    assert_int_equal(again.kind, tokenizer->kind);
    assert_comes_back(tokenizer);
    assert_comes_back(&again);
    co_tokenizer_close(&again);
    co_tokenizer_close(tokenizer);
}

static void tokenizer_saved_and_loaded_is_equal(void **state)
{
    static const char merges[] = "q u\nt e\n";
    co_tokenizer tokenizer = {.kind = CO_TOKENIZER_BYTES};

    (void)state;
    assert_saved_is_equal(&tokenizer, "bytes", 256);
    tokenizer.kind = CO_TOKENIZER_CHAR;
    assert_int_equal(co_characters_open(&tokenizer.characters), CO_OK);
    assert_int_equal(
        co_characters_see(&tokenizer.characters, (const uint8_t *)TEXT, strlen(TEXT), ""), CO_OK);
    assert_int_equal(co_characters_number(&tokenizer.characters), CO_OK);
    assert_saved_is_equal(&tokenizer, "characters", tokenizer.characters.n);
    tokenizer.kind = CO_TOKENIZER_BPE;
    assert_int_equal(co_bpe_parse(&tokenizer.bpe, (const uint8_t *)merges, sizeof(merges) - 1, "m"),
                     CO_OK);
    assert_saved_is_equal(&tokenizer, "merges", 258);
}

static void tokenizer_refuses_unknown_characters(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {{"ab\xc3\xaf", "the character U+00EF has no token"},
                 {"a\xff", "byte 0xff is not UTF-8"}};
    co_tokenizer tokenizer = {.kind = CO_TOKENIZER_CHAR};
    uint32_t *token;
    size_t n;

    (void)state;
    assert_int_equal(co_characters_open(&tokenizer.characters), CO_OK);
    assert_int_equal(co_characters_see(&tokenizer.characters, (const uint8_t *)"ab", 2, ""), CO_OK);
    assert_int_equal(co_characters_number(&tokenizer.characters), CO_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(co_tokenizer_encode(&token, &n, &tokenizer, (const uint8_t *)cases[i].text,
                                             strlen(cases[i].text)),
                         CO_E_DATA);
        assert_string_equal(co_error_message(), cases[i].message);
    }
    co_tokenizer_close(&tokenizer);
}

/* vocab.json of the 256 bytes and the merge `q u`, with `end` after the bytes. */
static co_status parse_vocab(co_bpe **bpe, const char *end)
{
    const char *path = folder_path("vocab.json");
    char *text;
    size_t size;
    co_status st;
    FILE *file;

    assert_int_equal(co_bpe_create(bpe), CO_OK);
    assert_int_equal(co_bpe_save_vocab(*bpe, path), CO_OK);
    co_bpe_destroy(*bpe);
    assert_int_equal(co_bpe_parse(bpe, (const uint8_t *)"q u\n", 4, "m"), CO_OK);
    text = calloc(1, 8192);
    file = fopen(path, "rb");
    assert_true(text && file);
    size = fread(text, 1, 8000, file);
    fclose(file);
    assert_int_equal(text[size - 1], '}');
    stpcpy(text + size - 1, end);
    st = co_bpe_parse_vocab(*bpe, (const uint8_t *)text, strlen(text), "v");
    free(text);
    return st;
}

static void vocab_of_other_order_is_refused(void **state)
{
    static const struct {
        const char *end, *message;
    } cases[] = {
        {"}", "v: has 256 tokens, and the merges make 257"},
        {",\"qu\":257}", "v: token 'qu': its number is none from 0 to 256"},
        {",\"qu\":255}", "v: token 'qu': its number is none from 0 to 256, or another's"},
        {",\"qu\":\"256\"}", "v: token 'qu': its number is none"},
        {",\"<s>\":256,\"qu\":257}",
         "v: token '<s>' is number 256, which is not that of the merges"},
        {",\"qu\":256,\"qu\":256}", "v: is no JSON object"},
        {"", "v: is no JSON object"},
    };
    co_bpe *bpe;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse_vocab(&bpe, cases[i].end), CO_E_DATA);
        if (!strstr(co_error_message(), cases[i].message))
            fail_msg("'%s' is not in: %s", cases[i].message, co_error_message());
        co_bpe_destroy(bpe);
    }
}

static void vocab_special_tokens_come_last(void **state)
{
    const uint32_t *token;
    const uint8_t *piece;
    co_bpe *bpe;
    size_t n;

    (void)state;
    assert_int_equal(parse_vocab(&bpe, ",\"qu\":256,\"<|end of \\\"text|>\":257}"), CO_OK);
    assert_int_equal(co_bpe_tokens(bpe), 258);
    piece = co_bpe_piece(bpe, &n, 257);
    assert_int_equal(n, strlen("<|end of \"text|>"));
    assert_memory_equal(piece, "<|end of \"text|>", n);
    assert_int_equal(co_bpe_word(&token, &n, bpe, (const uint8_t *)"<|end", 5), CO_OK);
    assert_int_equal(n, 5);
    co_bpe_destroy(bpe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokenizer_saved_and_loaded_is_equal),
        cmocka_unit_test(tokenizer_refuses_unknown_characters),
        cmocka_unit_test(vocab_of_other_order_is_refused),
        cmocka_unit_test(vocab_special_tokens_come_last),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
