/* test_tokenize.c - `cohort data tokenize`, the data set of what it writes, and what `data info`
 * says of the folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "program.h"

#define TEXT "one two, one two; three\n"

static void tokenize_makes_a_data_set(void **state)
{
    static const struct {
        const char *options, *said, *key, *info;
    } cases[] = {
        {"", "48 tokens of a vocabulary of 11", "count", "vocabulary       11"},
        {"--tokenizer bytes", "48 tokens of a vocabulary of 256", "count", "vocabulary       256"},
        {"--tokenizer bpe --vocab 260", "tokens of a vocabulary of 260", "260",
         "vocabulary       260"},
    };

    (void)state;
    program_write_text("two.txt", TEXT TEXT);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const program_result *r;
        char line[256];

        snprintf(line, sizeof(line), "data tokenize two.txt made %s", cases[i].options);
        r = program_line(line);
        program_assert_success(r);
        if (!strstr(r->out, cases[i].said))
            fail_msg("'%s' is not in: %s", cases[i].said, r->out);
        snprintf(line, sizeof(line),
                 "data info '{name: tokens, path: made, context: 4, test_fraction: 0.5, "
                 "vocabulary: %s}'",
                 cases[i].key);
        r = program_line(line);
        program_assert_success(r);
        assert_non_null(strstr(r->out, cases[i].info));
        r = program_line("data info made");
        program_assert_success(r);
        assert_non_null(strstr(r->out, "files            1\n"));
        program_remove("made");
    }
}

/* A file as llm.c's scripts write it: a header of 256 words, and tokens of 2 bytes. */
static void write_tokens(const char *path, const uint16_t *token, uint32_t n)
{
    static uint32_t file[256 + 8];

    assert_true(n <= 16);
    file[0] = 20240520;
    file[1] = 1;
    file[2] = n;
    memcpy(file + 256, token, n * sizeof(*token));
    program_write(path, file, 1024 + n * sizeof(*token));
}

static void assert_said(const program_result *r, const char *const *words)
{
    program_assert_success(r);
    for (; *words; words++)
        if (!strstr(r->out, *words))
            fail_msg("'%s' is not in: %s", *words, r->out);
}

static void tokenize_info_describes_the_folder(void **state)
{
    static const char *const made[] = {"tokens in made\n",
                                       "files            1\n",
                                       "tokens           48\n",
                                       "width            2 bytes (u16)\n",
                                       "vocabulary       11, characters\n",
                                       "highest token    10\n",
                                       "training split   43 tokens\n",
                                       "test split       5 tokens, the last tenth",
                                       "tokens.bin                       both  ",
                                       "llm.c's",
                                       NULL};

    (void)state;
    program_write_text("two.txt", TEXT TEXT);
    program_assert_success(program_line("data tokenize two.txt made --quiet"));
    assert_said(program_line("data info made"), made);
    /* with --set it is a data set as any other */
    assert_said(program_line("data info made --set data.context=4 --set data.test_fraction=0.5"),
                (const char *const[]){"test split of tokens\n  samples          6\n", NULL});
    write_tokens("made/more.bin", (const uint16_t[]){1, 2, 11}, 3);
    program_assert_error(program_line("data info made"), 3,
                         "made/more.bin: token 11; the tokenizer beside it has 11");
    program_remove("made");
}

static void tokenize_info_describes_files_of_others(void **state)
{
    static const char *const fineweb[] = {"files            2\n",
                                          "tokens           7\n",
                                          "vocabulary       not known",
                                          "highest token    50256\n",
                                          "training split   5 tokens\n",
                                          "test split       2 tokens, the files with val or test",
                                          NULL};

    (void)state;
    mkdir("fineweb", 0700);
    write_tokens("fineweb/web_train_0.bin", (const uint16_t[]){1, 2, 3, 4, 50256}, 5);
    write_tokens("fineweb/web_val_0.bin", (const uint16_t[]){7, 8}, 2);
    assert_said(program_line("data info fineweb"), fineweb);
    program_write("fineweb/web_val_0.bin", "\1\0\2", 3);
    program_assert_error(program_line("data info fineweb"), 3, "web_val_0.bin");
    program_remove("fineweb");
    /* Nothing says that these are tokens. */
    mkdir("bare", 0700);
    program_write("bare/web_train_0.bin", "\1\0\2\0", 4);
    program_assert_error(program_line("data info bare"), 3, "bare: is none of");
    program_write("bare/data_batch_1.bin", "\1\0\2\0", 4);
    program_assert_error(program_line("data info bare"), 3, "no whole number of cifar10's records");
    program_remove("bare");
}

static void tokenize_with_saved_merges_gives_the_same_tokens(void **state)
{
    char *trained, *read;

    (void)state;
    program_write_text("two.txt", TEXT TEXT);
    program_assert_success(
        program_line("data tokenize two.txt trained --tokenizer bpe --vocab 270 --quiet"));
    program_assert_success(program_line(
        "data tokenize two.txt again --tokenizer bpe --merges trained/merges.txt --quiet"));
    trained = program_read("trained/merges.txt");
    read = program_read("again/merges.txt");
    assert_string_equal(trained, read);
    free(trained);
    free(read);
    program_remove("trained");
    program_remove("again");
}

static void tokenize_wrong_input_is_refused(void **state)
{
    (void)state;
    program_write_text("two.txt", TEXT);
    program_write("bad.txt", "ab\ncd\xff", 6);
    program_write_text("bad.merges", "#version: 0.2\na b\nxy z\n");
    program_assert_error(program_line("data tokenize bad.txt made"), 3,
                         "bad.txt: line 2, byte 5: 0xff is not UTF-8");
    program_assert_error(
        program_line("data tokenize two.txt made --tokenizer bpe --merges bad.merges"), 3,
        "bad.merges: line 3: a token that no merge before it makes");
    program_assert_error(program_line("data tokenize none.txt made"), 3, "none.txt");
    program_assert_error(program_line("data tokenize two.txt made --tokenizer words"), 2,
                         "--tokenizer takes char, bytes or bpe");
    program_assert_error(program_line("data tokenize two.txt made --merges m"), 2,
                         "--merges is for --tokenizer bpe");
    program_assert_error(program_line("data tokenize two.txt made --vocab 300"), 2,
                         "--vocab is for --tokenizer bpe without --merges");
    program_assert_error(
        program_line("data tokenize two.txt made --tokenizer bpe --vocab 300 --merges m"), 2,
        "--vocab is for --tokenizer bpe without --merges");
    program_assert_error(program_line("data tokenize two.txt bad.txt"), 2, "bad.txt is there");
    assert_false(program_exists("made"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokenize_makes_a_data_set),
        cmocka_unit_test(tokenize_info_describes_the_folder),
        cmocka_unit_test(tokenize_info_describes_files_of_others),
        cmocka_unit_test(tokenize_with_saved_merges_gives_the_same_tokens),
        cmocka_unit_test(tokenize_wrong_input_is_refused),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
