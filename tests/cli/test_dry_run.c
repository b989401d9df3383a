/* test_dry_run.c - `cohort train --dry-run`: what it finds, what it says, and that it writes
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "fixtures.h"
#include "program.h"

static int dry_setup(void **state)
{
    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    return 0;
}

static double dry_number(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);

    if (!json_is_number(value))
        fail_msg("'%s' is no number", key);
    return json_number_value(value);
}

static void dry_run_good_config_writes_nothing(void **state)
{
    const program_result *r = program_line("list models"); /* leaves the files of its output */
    const int entries = program_count_entries(".");

    (void)state;
    program_assert_success(r);
    r = program_line("train good.yaml -n 2 --dry-run");
    program_assert_success(r);
    assert_string_equal(r->err, "");
    assert_non_null(strstr(r->out, "\nranks        2, strategy sync, 32 samples a step, 8 steps an "
                                   "epoch, 16 in all\n"));
    assert_non_null(strstr(r->out, "\nnothing was written"));
    assert_int_equal(program_count_entries("."), entries);
    assert_false(program_exists("runs"));
}

static void dry_run_quiet_prints_json_alone(void **state)
{
    const program_result *r = program_line("train good.yaml --dry-run -q");
    json_t *root;

    (void)state;
    program_assert_success(r);
    assert_string_equal(r->out, "");
    root = program_json("train good.yaml --dry-run -q --json");
    assert_int_equal(dry_number(root, "ranks"), 1);
    json_decref(root);
}

static void dry_run_json_has_what_the_run_has(void **state)
{
    json_t *root = program_json("train good.yaml -n 2 --dry-run --json"), *summary, *layers;

    (void)state;
    program_assert_success(program_line("train good.yaml -n 2 --quiet --run-dir real"));
    summary = program_summary("real");
    layers = json_object_get(root, "layers");
    assert_int_equal(dry_number(root, "total_steps"), dry_number(summary, "steps"));
    assert_int_equal(dry_number(root, "batch"), dry_number(summary, "batch"));
    assert_int_equal(dry_number(root, "parameter_count"), dry_number(summary, "parameter_count"));
    assert_int_equal(dry_number(root, "ranks"), 2);
    assert_true(json_array_size(layers) >= 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(layers, 1), "op")),
                        "linear");
    assert_true(dry_number(root, "measured_steps") >= 10);
    assert_true(dry_number(root, "step_seconds") > 0);
    assert_true(dry_number(root, "evaluation_seconds") > 0);
    assert_true(dry_number(root, "run_seconds") > dry_number(root, "epoch_seconds"));
    assert_true(dry_number(root, "peak_memory_bytes") > dry_number(root, "store_bytes"));
    json_decref(summary);
    json_decref(root);
}

static void dry_run_unreadable_sample_fails(void **state)
{
    static const char *const folder[] = {"images",         "images/train",   "images/val",
                                         "images/train/a", "images/train/b", "images/val/a",
                                         "images/val/b"};

    (void)state;
    for (size_t i = 0; i < sizeof(folder) / sizeof(folder[0]); i++)
        assert_int_equal(mkdir(folder[i], 0700), 0);
    for (size_t i = 3; i < sizeof(folder) / sizeof(folder[0]); i++) {
        char path[64];

        snprintf(path, sizeof(path), "%s/one.png", folder[i]);
        program_write_text(path, "no picture");
    }
    program_assert_error(program_line("train good.yaml --dry-run --set "
                                      "'data={name: imagefolder, path: images, resize: 8}'"),
                         3, "one.png");
}

static void dry_run_shrink_with_batch_per_rank_fails(void **state)
{
    (void)state;
    program_assert_error(program_line("train good.yaml -n 2 --dry-run --set on_failure=shrink "
                                      "--set batch_per_rank=8"),
                         2, "on_failure: shrink: with batch_per_rank");
}

static void dry_run_place_below_a_file_is_refused(void **state)
{
    (void)state;
    program_assert_error(program_line("train good.yaml --dry-run --run-dir good.yaml/below"), 2,
                         "good.yaml/below cannot be a folder");
}

static void dry_run_full_disk_fails(void **state)
{
    (void)state;
    program_assert_error(
        program_line("train good.yaml --dry-run --set 'model={name: mlp, hidden: [4096, 256]}' "
                     "--set epochs=1000000 --set 'checkpoint={every: 1 steps, keep: 1000000}'"),
        1, "checkpoint.keep");
}

static void dry_run_used_dir_needs_resume(void **state)
{
    json_t *root;
    char *before, *after;

    (void)state;
    program_assert_success(
        program_line("train good.yaml --quiet --run-dir used --set max_steps=8"));
    program_assert_error(program_line("train good.yaml --dry-run --run-dir used"), 2,
                         "holds an earlier run");
    before = program_read("used/metrics.jsonl");
    root = program_json("train good.yaml --dry-run --json --run-dir used --resume");
    after = program_read("used/metrics.jsonl");
    assert_string_equal(json_string_value(json_object_get(root, "begins")), "resume");
    assert_int_equal(dry_number(root, "first_step"), 8);
    assert_string_equal(before, after);
    assert_true(program_exists("used/summary.json"));
    json_decref(root);
    free(before);
    free(after);
}

static void dry_run_other_ways_to_start_are_refused(void **state)
{
    (void)state;
    program_assert_error(program_line("train good.yaml --json"), 2, "--json goes with --dry-run");
    program_assert_error(program_line("train good.yaml --dry-run --profile"), 2, "--dry-run");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dry_run_good_config_writes_nothing),
        cmocka_unit_test(dry_run_quiet_prints_json_alone),
        cmocka_unit_test(dry_run_json_has_what_the_run_has),
        cmocka_unit_test(dry_run_unreadable_sample_fails),
        cmocka_unit_test(dry_run_shrink_with_batch_per_rank_fails),
        cmocka_unit_test(dry_run_place_below_a_file_is_refused),
        cmocka_unit_test(dry_run_full_disk_fails),
        cmocka_unit_test(dry_run_used_dir_needs_resume),
        cmocka_unit_test(dry_run_other_ways_to_start_are_refused),
    };
    int failed;

    if (argc < 3 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests_name("cli_dry_run", tests, dry_setup, NULL);
    program_fini();
    return failed;
}
