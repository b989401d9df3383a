/* test_config_edit.c - a value in the text of a config is changed, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/config.h"
#include "core/mem.h"

static void edits(const char *text, const char *assignment, const char *expected)
{
    char *out = NULL;

    if (co_config_edit(&out, text, strlen(text), assignment) != CO_OK)
        fail_msg("%s: %s", assignment, co_error_message());
    assert_string_equal(out, expected);
    co_free(out);
}

static void config_edit_value_keeps_comments_and_spaces(void **state)
{
    (void)state;
    edits("# \xc3\xbc\xe2\x82\xac\nbatch: 16   # small\nranks: 2\n", "batch=256",
          "# \xc3\xbc\xe2\x82\xac\nbatch: 256   # small\nranks: 2\n");
    edits("seed: \"\xc3\xbc\"\nbatch: '16'\n\n# end\n", "batch=8",
          "seed: \"\xc3\xbc\"\nbatch: 8\n\n# end\n");
    edits("batch: 16\r\nranks: 2 # two\r\n", "ranks=1", "batch: 16\r\nranks: 1 # two\r\n");
}

static void config_edit_missing_key_is_added_at_the_end(void **state)
{
    (void)state;
    edits("batch: 16 # b\n", "ranks=2", "batch: 16 # b\nranks: 2\n");
    edits("batch: 16", "ranks=2", "batch: 16\nranks: 2\n");
    edits("", "ranks=2", "ranks: 2\n");
    edits("# nothing\n", "loader.threads=2", "# nothing\nloader: {threads: 2}\n");
    edits("{batch: 16, ranks: 2}\n", "threads=1", "{batch: 16, ranks: 2, threads: 1}\n");
}

static void config_edit_inner_key_is_changed_or_added(void **state)
{
    (void)state;
    edits("strategy: {name: sync, bucket_mib: 0.02} # s\nbatch: 1\n", "strategy.bucket_mib=auto",
          "strategy: {name: sync, bucket_mib: auto} # s\nbatch: 1\n");
    edits("strategy: {name: sync}\n", "strategy.bucket_mib=1",
          "strategy: {name: sync, bucket_mib: 1}\n");
    edits("strategy: {name: \"sync\"}\n", "strategy.bucket_mib=1",
          "strategy: {name: \"sync\", bucket_mib: 1}\n");
    edits("strategy: 'sync'\n", "strategy.bucket_mib=1",
          "strategy: {name: 'sync', bucket_mib: 1}\n");
    edits("loader: {}\n", "loader.threads=1", "loader: {threads: 1}\n");
    edits("strategy: # how\n  name: sync # s\n  update: whole\nbatch: 1\n", "strategy.bucket_mib=1",
          "strategy: # how\n  bucket_mib: 1\n  name: sync # s\n  update: whole\nbatch: 1\n");
    edits("strategy:\n    name: sync\n    bucket_mib: 8 # large\n", "strategy.bucket_mib=1",
          "strategy:\n    name: sync\n    bucket_mib: 1 # large\n");
}

/* It is not always the name of a plugin; each edit equals what co_config_set makes. */
static void config_edit_plain_value_stands_for_its_key(void **state)
{
    (void)state;
    edits("precision: bf16\n", "precision.loss_scale=4",
          "precision: {level: bf16, loss_scale: 4}\n");
    edits("checkpoint: 3 steps\n", "checkpoint.keep=9", "checkpoint: {every: 3 steps, keep: 9}\n");
    edits("partition: random\n", "partition.ratios=[1, 2]",
          "partition: {kind: random, ratios: [1, 2]}\n");
    edits("init: a\n", "init.skip=fc", "init: {weights: a, skip: fc}\n");
    edits("data: {resize: 32}\n", "data.resize.mode=pad",
          "data: {resize: {size: 32, mode: pad}}\n");
    edits("a: {precision: x}\n", "a.precision.b=1", "a: {precision: {name: x, b: 1}}\n");
}

static void config_edit_name_alone_becomes_a_map(void **state)
{
    (void)state;
    edits("strategy: sync # s\n", "strategy.bucket_mib=1",
          "strategy: {name: sync, bucket_mib: 1} # s\n");
    edits("strategy: {name: sync, compress: topk}\n", "strategy.compress.ratio=0.1",
          "strategy: {name: sync, compress: {name: topk, ratio: 0.1}}\n");
}

static void config_edit_whole_map_is_replaced(void **state)
{
    (void)state;
    edits("strategy: {name: local, period: 4} # s\n", "strategy={name: sync, compress: bf16}",
          "strategy: {name: sync, compress: bf16} # s\n");
}

static void config_edit_unusual_text_is_refused(void **state)
{
    static const char *const texts[] = {
        "ranks:\nbatch: 2\n", /* a value that is left out */
        "a: 1\n...\n",        /* nothing may follow the end */
        "ranks: |\n  1\n",    /* a block of text, of another kind of value */
    };
    char *out;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(co_config_edit(&out, texts[i], strlen(texts[i]), "ranks=2"),
                         CO_E_UNSUPPORTED);
        assert_null(out);
    }
    assert_int_equal(co_config_edit(&out, "[", 1, "ranks=2"), CO_E_USAGE);
    assert_int_equal(co_config_edit(&out, "a: 1", 4, "ranks"), CO_E_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_edit_value_keeps_comments_and_spaces),
        cmocka_unit_test(config_edit_missing_key_is_added_at_the_end),
        cmocka_unit_test(config_edit_inner_key_is_changed_or_added),
        cmocka_unit_test(config_edit_plain_value_stands_for_its_key),
        cmocka_unit_test(config_edit_name_alone_becomes_a_map),
        cmocka_unit_test(config_edit_whole_map_is_replaced),
        cmocka_unit_test(config_edit_unusual_text_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
