/* test_tokens.c - data set "tokens": headers, files of both splits, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "data/data.h"
#include "data/token_file.h"
#include "data/tokenize.h"
#include "files.h"
#include "text/bpe_internal.h"
#include "text/tokenizer.h"

#define CONTEXT 4

/* Write tokens first, first + 1, ... of `size` bytes, after a header if `magic` is not 0. */
static void write_tokens(const char *name, int size, uint32_t first, uint32_t count, uint32_t magic,
                         uint32_t version)
{
    uint32_t file[256 + 200] = {magic, version, count};
    uint8_t *at = (uint8_t *)(magic ? file + 256 : file);

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t token = first + i;

        memcpy(at + i * (uint32_t)size, &token, (size_t)size);
    }
    files_write(name, file, (magic ? CO_TOKEN_HEADER : 0) + (size_t)size * count);
}

static co_status open_tokens(co_dataset **out, const char *name, const char *more, co_split split)
{
    char config[1024];

    snprintf(config, sizeof(config), "{name: tokens, path: %s, context: 4%s}", files_path(name),
             more);
    return co_dataset_open(out, config, split);
}

/* The data set has `windows` windows, the first of which begins with token `first`. */
static void assert_holds(const char *name, const char *more, co_split split, uint64_t windows,
                         int first, int64_t vocabulary)
{
    int32_t input[CONTEXT], label[CONTEXT];
    co_dataset *data;

    if (open_tokens(&data, name, more, split) != CO_OK)
        fail_msg("%s: %s", name, co_error_message());
    assert_int_equal(co_dataset_count(data), windows);
    assert_int_equal(co_dataset_classes(data), vocabulary);
    assert_int_equal(co_dataset_read_field(data, input, 0, 0), CO_OK);
    assert_int_equal(co_dataset_read_field(data, label, 1, 0), CO_OK);
    for (int t = 0; t < CONTEXT; t++)
        assert_true(input[t] == first + t && label[t] == first + t + 1);
    co_dataset_destroy(data);
}

static void assert_refused(const char *name, const char *more, co_split split, co_status want,
                           const char *message)
{
    co_dataset *data;

    assert_int_equal(open_tokens(&data, name, more, split), want);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in: %s", message, co_error_message());
}

static void tokens_with_and_without_header_are_read(void **state)
{
    (void)state;
    write_tokens("a.bin", 2, 100, 50, CO_TOKEN_MAGIC_U16, CO_TOKEN_VERSION_U16);
    assert_holds("a.bin", "", CO_SPLIT_TRAIN, 10, 100, 150);
    assert_holds("a.bin", "", CO_SPLIT_TEST, 1, 145, 150);
    write_tokens("a.bin", 4, 100000, 50, CO_TOKEN_MAGIC_U32, CO_TOKEN_VERSION_U32);
    assert_holds("a.bin", ", vocabulary: 200000", CO_SPLIT_TRAIN, 10, 100000, 200000);
    write_tokens("a.bin", 2, 65500, 36, 0, 0);
    assert_holds("a.bin", ", test_fraction: 0", CO_SPLIT_TRAIN, 8, 65500, 65536);
    write_tokens("a.bin", 4, 70000, 36, 0, 0);
    assert_holds("a.bin", ", dtype: u32, test_fraction: 0.5", CO_SPLIT_TEST, 5, 70018, 70036);
    files_remove("a.bin");
}

static void tokens_of_a_folder_are_one_set(void **state)
{
    (void)state;
    write_tokens("part_2.bin", 2, 40, 20, 0, 0);
    write_tokens("part_1.bin", 2, 0, 40, 0, 0);
    write_tokens("notes.txt", 2, 0, 40, 0, 0);
    assert_holds("", ", test_fraction: 0", CO_SPLIT_TRAIN, 9 + 4, 0, 60);
    assert_holds("", ", test_fraction: 0.25", CO_SPLIT_TEST, 3 + 1, 30, 60); /* of each file */
    write_tokens("contest_val_1.bin", 4, 500, 13, CO_TOKEN_MAGIC_U32, CO_TOKEN_VERSION_U32);
    assert_holds("", "", CO_SPLIT_TRAIN, 9 + 4, 0, 513);
    assert_holds("", "", CO_SPLIT_TEST, 3, 500, 513);
    files_remove("contest_val_1.bin");
    write_tokens("contest.bin", 2, 7, 9, 0, 0); /* no file of the test split */
    assert_holds("", ", test_fraction: 0", CO_SPLIT_TRAIN, 1 + 9 + 4, 7, 60);
    files_remove("contest.bin");
    files_remove("part_1.bin");
    files_remove("part_2.bin");
}

/* Every tenth token is <|endoftext|>, which no byte of the text became. */
static void tokens_special_ones_have_no_bytes(void **state)
{
    co_tokenizer tokenizer = {.kind = CO_TOKENIZER_BPE};
    uint16_t token[40];
    co_dataset *data;

    (void)state;
    assert_int_equal(co_bpe_create(&tokenizer.bpe), CO_OK);
    assert_int_equal(co_bpe_add_special(tokenizer.bpe, (const uint8_t *)"<|endoftext|>", 13),
                     CO_OK);
    assert_int_equal(co_tokenizer_save(&tokenizer, files_path("")), CO_OK);
    co_tokenizer_close(&tokenizer);
    for (int i = 0; i < 40; i++)
        token[i] = (uint16_t)(i % 10 == 9 ? CO_BPE_BYTES : i);
    files_write("a.bin", token, sizeof(token));
    assert_int_equal(open_tokens(&data, "a.bin", ", test_fraction: 0.5", CO_SPLIT_TEST), CO_OK);
    assert_int_equal(co_dataset_classes(data), CO_BPE_BYTES + 1);
    assert_true(co_dataset_bytes_per_token(data) == 0.9);
    co_dataset_destroy(data);
    files_remove("a.bin");
    files_remove("merges.txt");
    files_remove("vocab.json");
}

static void tokens_of_the_test_key_are_the_test_split(void **state)
{
    char more[600];

    (void)state;
    write_tokens("a.bin", 2, 0, 20, 0, 0);
    write_tokens("b.bin", 2, 50, 9, 0, 0);
    snprintf(more, sizeof(more), ", test: %s", files_path("b.bin"));
    assert_holds("a.bin", more, CO_SPLIT_TRAIN, 4, 0, 59);
    assert_holds("a.bin", more, CO_SPLIT_TEST, 2, 50, 59);
    /* in the folder of the training split, too */
    assert_holds("", more, CO_SPLIT_TRAIN, 4, 0, 59);
    assert_holds("", more, CO_SPLIT_TEST, 2, 50, 59);
    assert_refused("b.bin", more, CO_SPLIT_TRAIN, CO_E_DATA, "every file of tokens is of the test");
    files_remove("a.bin");
    files_remove("b.bin");
}

static void tokens_beyond_the_vocabulary_name_the_place(void **state)
{
    int32_t token[CONTEXT];
    co_dataset *data;

    (void)state;
    write_tokens("a.bin", 2, 0, 40, CO_TOKEN_MAGIC_U16, CO_TOKEN_VERSION_U16);
    assert_int_equal(
        open_tokens(&data, "a.bin", ", vocabulary: 38, test_fraction: 0.5", CO_SPLIT_TEST), CO_OK);
    assert_int_equal(co_dataset_read_field(data, token, 1, 3), CO_OK);
    assert_int_equal(co_dataset_read_field(data, token, 0, 4), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "a.bin: token 38 is 38; the vocabulary is 0 to 37"));
    co_dataset_destroy(data);
    files_remove("a.bin");
}

/* Two tokens of 16 bits are one of 32. */
static void tokens_of_the_wrong_type_are_refused(void **state)
{
    (void)state;
    write_tokens("a.bin", 2, 50000, 40, 0, 0);
    assert_refused("a.bin", ", dtype: u32", CO_SPLIT_TRAIN, CO_E_DATA,
                   "a.bin: has the token 3279405942, which no vocabulary has; of a file without a "
                   "header data.dtype says");
    files_remove("a.bin");
}

static void tokens_in_an_unusable_file_are_refused(void **state)
{
    static const uint32_t magic[] = {CO_TOKEN_MAGIC_U16};
    uint32_t model[256 + 10] = {20240326, 3, 50257};

    (void)state;
    write_tokens("a.bin", 2, 0, 40, CO_TOKEN_MAGIC_U16, 2);
    assert_refused("a.bin", "", CO_SPLIT_TRAIN, CO_E_DATA, "a.bin: byte 4: a header of version 2");
    files_write("a.bin", model, sizeof(model));
    assert_refused("a.bin", "", CO_SPLIT_TRAIN, CO_E_DATA,
                   "a.bin: byte 0: a header of magic 20240326");
    files_write("a.bin", magic, sizeof(magic));
    assert_refused("a.bin", "", CO_SPLIT_TRAIN, CO_E_DATA, "a.bin: byte 0: magic 20240520");
    model[0] = CO_TOKEN_MAGIC_U32;
    model[1] = CO_TOKEN_VERSION_U32;
    files_write("a.bin", model, sizeof(model));
    assert_refused("a.bin", "", CO_SPLIT_TRAIN, CO_E_DATA,
                   "cut short: 40 bytes of tokens; 50257 tokens (byte 8) of 4 bytes need 201028");
    model[2] = 9;
    files_write("a.bin", model, sizeof(model));
    assert_refused("a.bin", "", CO_SPLIT_TRAIN, CO_E_DATA, "too long");
    files_write("a.bin", "abcdefg", 7);
    assert_refused("a.bin", "", CO_SPLIT_TRAIN, CO_E_DATA, "a.bin: byte 6: cut short");
    files_write("a.bin", "\x1f\x8b\x08\x00", 4);
    assert_refused("a.bin", "", CO_SPLIT_TRAIN, CO_E_DATA, "a.bin: is gzip");
    files_write("a.bin", "", 0);
    assert_refused("a.bin", "", CO_SPLIT_TRAIN, CO_E_DATA, "a.bin: is empty");
    write_tokens("a.bin", 2, 0, 40, 0, 0);
    assert_refused("a.bin", "", CO_SPLIT_TEST, CO_E_DATA,
                   "a.bin: 4 tokens in the test split; a window of context 4 needs 5");
    files_remove("a.bin");
    assert_refused("a.bin", "", CO_SPLIT_TRAIN, CO_E_DATA, "a.bin: No such file");
    write_tokens("val.bin", 2, 0, 40, 0, 0);
    assert_refused("", "", CO_SPLIT_TRAIN, CO_E_DATA, "every file of tokens is of the test split");
    files_remove("val.bin");
    assert_refused("", "", CO_SPLIT_TRAIN, CO_E_DATA, "no file of tokens, *.bin");
}

#define TEXT_SIZE ((size_t)3 << 19) /* `check` is called once in each of the two readings */

static co_status interrupt(void *calls)
{
    return --*(int *)calls > 0 ? CO_OK : co_fail(CO_E_INTERRUPTED, "interrupted");
}

static void tokenize_interrupted_leaves_nothing(void **state)
{
    static char text[TEXT_SIZE];
    char source[600], target[600];

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 7 == 6 ? ' ' : 'a';
    files_write("long.txt", text, sizeof(text));
    snprintf(source, sizeof(source), "%s", files_path("long.txt"));
    snprintf(target, sizeof(target), "%s", files_path("made"));
    for (int calls = 1; calls <= 3; calls++) {
        int left = calls;
        const co_tokenize_options options = {
            .source = source, .target = target, .check = interrupt, .arg = &left};
        co_tokenized done;

        assert_int_equal(co_tokenize(&done, &options), calls < 3 ? CO_E_INTERRUPTED : CO_OK);
        assert_int_equal(co_fs_exists(target), calls == 3);
    }
    co_fs_remove_folder(target);
    files_remove("long.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_with_and_without_header_are_read),
        cmocka_unit_test(tokens_of_a_folder_are_one_set),
        cmocka_unit_test(tokens_special_ones_have_no_bytes),
        cmocka_unit_test(tokens_of_the_test_key_are_the_test_split),
        cmocka_unit_test(tokens_beyond_the_vocabulary_name_the_place),
        cmocka_unit_test(tokens_of_the_wrong_type_are_refused),
        cmocka_unit_test(tokens_in_an_unusable_file_are_refused),
        cmocka_unit_test(tokenize_interrupted_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
