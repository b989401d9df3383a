/* test_compare.c - comparisons: tables and plots, cells that fail, resuming. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/fixtures.h"
#include "cli/program.h"
#include "shell.h"

#define COMPARE_TWO "sync, {name: sync, reduction: mean}"

/* A cell of a table.json, borrowed until the next call. */
static const json_t *compare_cell(const char *dir, size_t i)
{
    static json_t *table;
    json_error_t error;
    char path[256];

    json_decref(table);
    table = NULL;
    if (!dir)
        return NULL;
    snprintf(path, sizeof(path), "%s/table.json", dir);
    table = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!table)
        fail_msg("%s: %s", path, error.text);
    assert_non_null(json_array_get(json_object_get(table, "cells"), i));
    return json_array_get(json_object_get(table, "cells"), i);
}

static double compare_number(const json_t *cell, const char *key)
{
    const json_t *value = json_object_get(cell, key);

    if (!json_is_number(value))
        fail_msg("'%s' is not a number", key);
    return json_number_value(value);
}

static void assert_text(const json_t *cell, const char *key, const char *words)
{
    const char *text = json_string_value(json_object_get(cell, key));

    if (!text || !strstr(text, words))
        fail_msg("'%s' is '%s', which lacks '%s'", key, text ? text : "", words);
}

static void assert_cell(const char *dir, size_t i, const char *strategy, int ranks,
                        const char *status)
{
    const json_t *cell = compare_cell(dir, i);

    assert_string_equal(json_string_value(json_object_get(cell, "strategy")), strategy);
    assert_int_equal(compare_number(cell, "ranks"), ranks);
    assert_string_equal(json_string_value(json_object_get(cell, "status")), status);
}

static void assert_page_has(const char *path, const char *words)
{
    char *text = program_read(path);

    if (!text || !strstr(text, words))
        fail_msg("%s lacks '%s': %s", path, words, text ? text : "no such file");
    free(text);
}

static bool compare_has_gnuplot(void)
{
    return shell_has("gnuplot");
}

/* ---- output ---- */

static void compare_two_strategies_writes_tables(void **state)
{
    const program_result *r =
        program_line("compare good.yaml --strategies '" COMPARE_TWO "' -n 1,2 --out all");

    (void)state;
    program_assert_success(r);
    assert_string_equal(r->err, "");
    assert_non_null(strstr(r->out, "[1/4] sync, 1 rank: "));
    assert_non_null(strstr(r->out, "[4/4] sync reduction=mean, 2 ranks: "));
    assert_non_null(strstr(r->out, " left\n"));
    assert_null(strchr(r->out, '\r'));
    assert_cell("all", 0, "sync", 1, "done");
    assert_cell("all", 1, "sync", 2, "done");
    assert_cell("all", 2, "sync reduction=mean", 1, "done");
    assert_cell("all", 3, "sync reduction=mean", 2, "done");
    assert_page_has("all/table.txt", "\nsync reduction=mean      2 ");
    assert_page_has("all/table.csv", "\n\"sync reduction=mean\",2,done,");
    assert_true(program_exists("all/sync-reduction-mean-2/summary.json"));
    assert_true(program_exists("all/sync-1/log.txt"));
}

/* Uses the run above: the figures equal those of its runs, and are consistent. */
static void compare_figures_equal_those_of_runs(void **state)
{
    json_t *one = program_summary("all/sync-1");
    json_t *two = program_summary("all/sync-2");
    const json_t *cell = compare_cell("all", 1);
    double ratio = compare_number(two, "sync_seconds") / compare_number(two, "compute_seconds");
    double speedup = compare_number(one, "train_seconds") / compare_number(two, "train_seconds");

    (void)state;
    assert_true(fabs(compare_number(cell, "speedup") / speedup - 1) < 1e-6);
    assert_true(fabs(compare_number(cell, "predicted_speedup") * (1 + ratio) / 2 - 1) < 1e-6);
    assert_true(compare_number(cell, "bytes_sent") == compare_number(two, "bytes_sent"));
    assert_true(compare_number(cell, "test_accuracy") == compare_number(two, "test_accuracy"));
    assert_true(compare_number(two, "sync_seconds") > 0);
    assert_true(compare_number(two, "sync_seconds") + compare_number(two, "compute_seconds") <=
                compare_number(two, "train_seconds") * 1.001);
    assert_true(compare_number(compare_cell("all", 0), "speedup") == 1);
    assert_true(compare_number(compare_cell("all", 2), "speedup") == 1);
    assert_true(compare_number(compare_cell("all", 0), "bytes_sent") == 0);
    json_decref(two);
    json_decref(one);
}

static void compare_plots_are_written_as_images(void **state)
{
    static const char *const names[] = {"speedup",       "accuracy",  "loss",
                                        "accuracy-time", "loss-time", "bytes"};

    (void)state;
    assert_page_has("all/plots.gp", "sync reduction=mean");
    if (!compare_has_gnuplot()) {
        print_message("skipped: no gnuplot here\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64];

        snprintf(path, sizeof(path), "all/%s.png", names[i]);
        assert_page_has(path, "PNG\r\n");
        snprintf(path, sizeof(path), "all/%s.svg", names[i]);
        assert_page_has(path, "</svg>");
    }
    assert_false(program_exists("all/plots.log")); /* gnuplot printed nothing */
}

/* Every cell runs once per seed; the table has mean and standard deviation. */
static void compare_seeds_give_mean_and_spread(void **state)
{
    const program_result *r =
        program_line("compare good.yaml --strategies sync -n 1,2 --seeds 7,8 --out seeds");
    char seven[65], eight[65];

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "[1/4] sync, 1 rank, seed 7: "));
    assert_non_null(strstr(r->out, "[4/4] sync, 2 ranks, seed 8: "));
    assert_non_null(strstr(r->out, "Means over seeds 7, 8; "));
    assert_cell("seeds", 3, "sync", 2, "done");
    assert_text(compare_cell("seeds", 2), "seed", "7");
    assert_true(compare_number(compare_cell("seeds", 1), "speedup") == 1);
    program_weights(seven, "seeds/sync-2-seed-7");
    program_weights(eight, "seeds/sync-2-seed-8");
    assert_string_not_equal(seven, eight);
    assert_page_has("seeds/table.txt", " 2 of 2 done\n");
    assert_page_has("seeds/plots.gp", "'seeds 7, 8; ");
    assert_page_has("seeds/plots.gp", "yerrorlines");
    if (compare_has_gnuplot())
        assert_false(program_exists("seeds/plots.log"));
    /* adding a seed keeps the finished cells */
    r = program_line("compare good.yaml --strategies sync -n 1,2 --seeds 7,8,9 --out seeds "
                     "--resume");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "[1/6] sync, 1 rank, seed 7: "));
    assert_page_has("seeds/table.txt", " 3 of 3 done\n");
}

static void compare_without_gnuplot_writes_tables(void **state)
{
    static const char *const args[] = {"compare", "good.yaml", "--strategies", "sync", "-n",
                                       "2",       "--out",     "plain",        NULL};
    const program_options options = {.before = {"env", "PATH=/nowhere"}};
    const program_result *r = program_run(args, &options);

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "no plots: "));
    assert_non_null(strstr(r->out, "gnuplot-nox"));
    assert_cell("plain", 0, "sync", 2, "done");
    /* no strategy has a one-rank cell to compare with */
    assert_true(json_is_null(json_object_get(compare_cell("plain", 0), "speedup")));
    assert_true(program_exists("plain/plots.gp"));
    assert_false(program_exists("plain/speedup.png"));
}

/* A strategy without its own one-rank cell is compared with sync's; special characters for shell,
   YAML, CSV or gnuplot are preserved. */
static void compare_special_names_are_escaped(void **state)
{
    const program_result *r =
        program_line("compare good.yaml --strategies 'sync' -n 1 --out \"'`$(x),\" -q");

    (void)state;
    program_assert_success(r);
    assert_string_equal(r->out, "");
    assert_cell("\"'`$(x),\"", 0, "sync", 1, "done");
}

/* ---- cells that fail ---- */

static void compare_failed_cell_does_not_stop_others(void **state)
{
    const program_result *r =
        program_line("compare good.yaml --strategies '" COMPARE_TWO "' -n 1,2 --out some "
                     "-s 'partition={kind: random, ratios: [0.5, 0.5]}'");

    (void)state;
    program_assert_error(r, 1, "2 of 4 cells failed");
    assert_non_null(strstr(r->out, "[1/4] sync, 1 rank: failed: "));
    assert_cell("some", 0, "sync", 1, "failed");
    assert_cell("some", 1, "sync", 2, "done");
    assert_cell("some", 2, "sync reduction=mean", 1, "failed");
    assert_cell("some", 3, "sync reduction=mean", 2, "done");
    assert_text(compare_cell("some", 0), "reason", "ratios");
    assert_true(json_is_null(json_object_get(compare_cell("some", 0), "train_seconds")));
    assert_page_has("some/table.txt", "failed");
    assert_page_has("some/table.txt", "\nsync, 1 rank: ");
    if (compare_has_gnuplot())
        assert_true(program_exists("some/accuracy.png"));
}

static void compare_cell_over_time_limit_is_ended(void **state)
{
    const program_result *r =
        program_line("compare long.yaml --strategies sync -n 2 --out late --limit 1");

    (void)state;
    program_assert_error(r, 1, "took longer than 1 s");
    assert_int_equal(r->orphans, 0);
    assert_cell("late", 0, "sync", 2, "failed");
}

static void compare_killed_cell_is_reported(void **state)
{
    static const char *const args[] = {"compare", "long.yaml", "--strategies", "sync", "-n",
                                       "2",       "--out",     "killed",       NULL};
    const program_options options = {
        .signal = SIGKILL, .signal_child = true, .signal_at = "killed/sync-2/metrics.jsonl"};
    const program_result *r = program_run(args, &options);

    (void)state;
    program_assert_error(r, 1, "killed by signal 9");
    assert_int_equal(r->orphans, 0);
    assert_text(compare_cell("killed", 0), "reason", "killed by signal 9");
}

/* ---- resuming ---- */

static long long compare_changed_at(const char *path)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return (long long)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

static void compare_resume_keeps_finished_cells(void **state)
{
    const char *kept = "all/sync-1/summary.json", *anew = "all/sync-2/summary.json";
    const long long before = compare_changed_at(kept);
    const program_result *r;

    (void)state;
    remove(anew); /* as after a crash */
    r = program_line("compare good.yaml --strategies '" COMPARE_TWO
                     "' -n 1,2,3 --out all --resume");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "[1/6] sync, 1 rank: "));
    assert_non_null(strstr(r->out, " (from before)\n"));
    assert_true(compare_changed_at(kept) == before);
    assert_true(program_exists(anew));
    assert_cell("all", 0, "sync", 1, "done");
    assert_cell("all", 1, "sync", 2, "done");
    assert_cell("all", 2, "sync", 3, "done");
}

static void compare_cells_apart_come_together(void **state)
{
    (void)state;
    for (int i = 3; i >= 1; i--) {
        char line[128];

        snprintf(line, sizeof(line),
                 "compare good.yaml --strategies sync -n 1,2,3 --out apart --cell %d", i);
        program_assert_success(program_line(line));
        assert_int_equal(program_count_entries("apart"), 4 - i);
    }
    program_assert_success(
        program_line("compare good.yaml --strategies sync -n 1,2,3 --out apart --resume"));
    for (size_t i = 0; i < 3; i++)
        assert_cell("apart", i, "sync", (int)i + 1, "done");
}

static void compare_resume_with_other_config_is_refused(void **state)
{
    (void)state;
    program_assert_error(program_line("compare good.yaml --strategies sync -n 1,2 --out all"), 2,
                         "--resume");
    program_assert_error(program_line("compare good.yaml --strategies '" COMPARE_TWO
                                      "' -n 1,2,3 --out all --resume -s batch=16"),
                         2, "all/sync-1 is finished, but with another config");
    program_assert_error(
        program_line("compare good.yaml --strategies sync -n 1 --out mine --resume"), 2,
        "no comparison has made it");
    assert_true(program_exists("mine/sync-1/thesis.txt"));
}

static void compare_resume_with_fewer_cells_is_refused(void **state)
{
    char *before = program_read("all/table.json"), *after;

    (void)state;
    program_assert_error(
        program_line("compare good.yaml --strategies local -n 1 --out ./all --resume"), 2,
        "./all/sync-1 is of this comparison, whose tables would lose it");
    program_assert_error(
        program_line("compare good.yaml --strategies '" COMPARE_TWO "' -n 1,3 --out all --resume"),
        2, "all/sync-2 is of this comparison");
    after = program_read("all/table.json");
    assert_string_equal(before, after);
    free(before);
    free(after);
    program_remove("all/sync-3");
    program_remove("all/sync-reduction-mean-3");
    program_assert_success(
        program_line("compare good.yaml --strategies '" COMPARE_TWO "' -n 1,2 --out all --resume"));
}

/* Their names are in the config of a cell that has run, and not in the one that is given. */
static void compare_resume_knows_measured_kernels(void **state)
{
    const char *line = "compare good.yaml --strategies sync -n 1 --out kernels --resume "
                       "-s 'kernels={choice: measured, seconds: 5}' -s epochs=1";
    const program_result *r;

    (void)state;
    program_assert_success(program_line(line));
    r = program_line(line);
    program_assert_success(r);
    assert_non_null(strstr(r->out, " (from before)\n"));
}

static void assert_ends(int signal, int exit_code)
{
    static const char *const args[] = {"compare", "long.yaml", "--strategies", "sync", "-n",
                                       "2,1",     "--out",     "ended",        NULL};
    const program_options options = {.signal = signal, .signal_at = "ended/sync-2/metrics.jsonl"};
    const program_result *r;

    program_remove("ended");
    r = program_run(args, &options);
    assert_int_equal(r->exit_code, exit_code);
    assert_int_equal(r->orphans, 0);
    assert_false(program_exists("ended/sync-1"));
    if (signal == SIGKILL)
        return;
    program_assert_error(r, exit_code, "--out ended --resume");
    assert_cell("ended", 0, "sync", 2, "stopped");
    assert_cell("ended", 1, "sync", 1, "not run");
}

static void compare_signal_ends_running_cell(void **state)
{
    (void)state;
    assert_ends(SIGTERM, 143);
    assert_ends(SIGKILL, 128 + SIGKILL);
    assert_ends(SIGINT, 130);
    assert_page_has("ended/sync-2/log.txt", "cohort: error: interrupted"); /* it was asked to end */
    /* the unfinished cell is run again */
    program_assert_error(
        program_line("compare long.yaml --strategies sync -n 2 --out ended --resume --limit 1"), 1,
        "took longer");
}

/* ---- usage ---- */

static void compare_usage_error_starts_no_cell(void **state)
{
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"compare good.yaml -n 1,2 --out bad", "--strategies is missing"},
        {"compare good.yaml --strategies sync --out bad", "--ranks is missing"},
        {"compare good.yaml --strategies snyc -n 1 --out bad", "sync"},
        {"compare good.yaml --strategies '{name: sync, redction: sum}' -n 1 --out bad",
         "reduction"},
        {"compare good.yaml --strategies sync,sync -n 1 --out bad", "given twice"},
        {"compare good.yaml --strategies 'sync, {name: sync' -n 1 --out bad", "sync"},
        {"compare good.yaml --strategies '[]' -n 1 --out bad", "takes a list"},
        {"compare good.yaml --strategies sync -n 0 --out bad", "from 1 to 1024"},
        {"compare good.yaml --strategies sync -n 1,x --out bad", "whole number"},
        {"compare good.yaml --strategies sync -n 2,1,2 --out bad", "2 is given twice"},
        {"compare good.yaml --strategies sync -n 1 --seeds 3,3 --out bad",
         "--seeds 3,3: 3 is given"},
        {"compare good.yaml --strategies sync -n 1 --seeds -1 --out bad", "from 0 to"},
        {"compare good.yaml --strategies sync -n 1 --resume", "--resume needs --out"},
        {"compare good.yaml --strategies sync -n 1 --cell 1", "--cell needs --out"},
        {"compare good.yaml --strategies sync -n 1 --out good.yaml", "cannot be a folder"},
        {"compare good.yaml --strategies sync -n 1 --out bad --cell 2", "this comparison has 1"},
        {"compare nowhere.yaml --strategies sync -n 1 --out bad", "nowhere.yaml"},
        {"compare good.yaml --strategies sync -n 1 --out bad -s bach=2", "batch"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        program_assert_error(program_line(cases[i].line), 2, cases[i].words);
    assert_false(program_exists("bad"));
}

static int compare_setup(void **state)
{
    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    program_write_text("long.yaml", "model: {name: mlp, hidden: [16]}\nepochs: 1000000\n"
                                    "data: {name: synthetic, shape: [1, 8, 8], classes: 4}\n"
                                    "log_every: 1\n");
    assert_int_equal(mkdir("mine", 0700), 0);
    assert_int_equal(mkdir("mine/sync-1", 0700), 0);
    program_write_text("mine/sync-1/thesis.txt", "years of work\n");
    return 0;
}

static int compare_teardown(void **state)
{
    (void)state;
    compare_cell(NULL, 0);
    return 0;
}

int main(int argc, char **argv)
{
    /* In this order: later ones use the folder of the first. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compare_two_strategies_writes_tables),
        cmocka_unit_test(compare_figures_equal_those_of_runs),
        cmocka_unit_test(compare_plots_are_written_as_images),
        cmocka_unit_test(compare_seeds_give_mean_and_spread),
        cmocka_unit_test(compare_resume_keeps_finished_cells),
        cmocka_unit_test(compare_cells_apart_come_together),
        cmocka_unit_test(compare_resume_with_other_config_is_refused),
        cmocka_unit_test(compare_resume_with_fewer_cells_is_refused),
        cmocka_unit_test(compare_resume_knows_measured_kernels),
        cmocka_unit_test(compare_without_gnuplot_writes_tables),
        cmocka_unit_test(compare_special_names_are_escaped),
        cmocka_unit_test(compare_failed_cell_does_not_stop_others),
        cmocka_unit_test(compare_cell_over_time_limit_is_ended),
        cmocka_unit_test(compare_killed_cell_is_reported),
        cmocka_unit_test(compare_signal_ends_running_cell),
        cmocka_unit_test(compare_usage_error_starts_no_cell),
    };
    int failed;

    setenv("LC_ALL", "C", 1); /* plots are UTF-8 regardless */
    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, compare_setup, compare_teardown);
    program_fini();
    return failed;
}
