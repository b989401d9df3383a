/*
 * test_readers.c - how many threads read ahead unless a config says it: none where samples are in
 * memory and one core does all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "folder.h"
#include "shell.h"
#include "train/loader_setup.h"

#define TOKENS 512

typedef struct readers_case {
    const char *data;             /* %s: a file */
    int one, two, one_and_device; /* readers, of a rank with so many cores */
} readers_case;

static const readers_case cases[] = {
    {"{name: synthetic, shape: [1, 8, 8], classes: 2, samples: 16}", 0, 1, 1},
    {"{name: synthetic-tokens, context: 8, vocabulary: 9, samples: 16}", 0, 1, 1},
    {"{name: text, path: %s, context: 8, tokenizer: bytes}", 0, 1, 1},
    /* pages of a mapped file come from a disk */
    {"{name: tokens, path: %s, context: 8}", 1, 1, 1},
};

static void make_file(void)
{
    FILE *file = fopen(folder_path("data.bin"), "wb");

    assert_non_null(file);
    for (int i = 0; i < TOKENS; i++)
        assert_int_equal(fputc("ab"[i & 1], file), "ab"[i & 1]);
    assert_int_equal(fclose(file), 0);
}

static void readers_are_left_out_where_they_hold_up(void **state)
{
    (void)state;
    make_file();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        co_dataset *data = NULL;
        char config[512];

        snprintf(config, sizeof(config), cases[i].data, folder_path("data.bin"));
        assert_int_equal(co_dataset_open(&data, config, CO_SPLIT_TRAIN), CO_OK);
        assert_int_equal(co_feed_readers(data, 1, false), cases[i].one);
        assert_int_equal(co_feed_readers(data, 2, false), cases[i].two);
        assert_int_equal(co_feed_readers(data, 1, true), cases[i].one_and_device);
        co_dataset_destroy(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(readers_are_left_out_where_they_hold_up, folder_make,
                                        folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
