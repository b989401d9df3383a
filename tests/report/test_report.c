/*
 * test_report.c - cells from the files of runs, comparisons between them, and tables and scripts
 * that are safe for any name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"
#include "report/report.h"
#include "shell.h"

#define REPORT_SUMMARY                                                                             \
    "{\"train_seconds\": 2.5, \"samples_per_second\": 1000, \"compute_seconds\": 1.5,"             \
    " \"sync_seconds\": 0.5, \"test_accuracy\": 0.75, \"test_loss\": 0.5, \"bytes_sent\": 4096}\n"
#define REPORT_METRICS                                                                             \
    "{\"event\":\"start\"}\n"                                                                      \
    "{\"event\":\"step\",\"train_seconds\":0.5,\"test_accuracy\":0.1}\n"                           \
    "{\"event\":\"epoch\",\"train_seconds\":1.25,\"test_accuracy\":0.5}\n"                         \
    "{\"event\":\"epoch\",\"train_seconds\":2.5,\"test_accuracy\":0.6}\n"

static char report_dir[64];

static const char *report_path(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", report_dir, name);
    return path;
}

static void report_write(const char *name, const char *text)
{
    FILE *file = fopen(report_path(name), "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void report_read_into(uint8_t **out, const char *name)
{
    size_t size;

    assert_int_equal(co_fs_read(out, &size, report_path(name), 1 << 20, CO_E_DATA), CO_OK);
}

static char *report_read(const char *name)
{
    uint8_t *bytes = NULL;
    char *text;

    report_read_into(&bytes, name);
    text = co_strdup((char *)bytes);
    co_free(bytes);
    assert_non_null(text);
    return text;
}

static int report_setup(void **state)
{
    (void)state;
    strcpy(report_dir, "/tmp/cohort-report-XXXXXX");
    return mkdtemp(report_dir) ? 0 : -1;
}

static int report_teardown(void **state)
{
    static const char *const files[] = {"summary.json", "metrics.jsonl", "table.txt",
                                        "table.csv",    "table.json",    "plots.gp"};

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        unlink(report_path(files[i]));
    return rmdir(report_dir); /* fails if anything else was left behind */
}

/* ---- cells ---- */

static void cell_of_finished_run_is_read(void **state)
{
    co_cell cell;

    (void)state;
    report_write("summary.json", REPORT_SUMMARY);
    report_write("metrics.jsonl",
                 REPORT_METRICS "{\"event\":\"end\",\"train_seconds\":2.5,\"test_accuracy\":0.6}");
    co_cell_init(&cell, "sync", 2, report_dir);
    assert_int_equal(cell.state, CO_CELL_WAITING);
    assert_int_equal(co_cell_read(&cell), CO_OK);
    assert_int_equal(cell.state, CO_CELL_DONE);
    assert_true(cell.train_seconds == 2.5 && cell.samples_per_second == 1000);
    assert_true(cell.compute_seconds == 1.5 && cell.sync_seconds == 0.5);
    assert_true(cell.test_accuracy == 0.75 && cell.test_loss == 0.5 && cell.bytes_sent == 4096);
    assert_int_equal(cell.n_point, 2); /* the end adds none */
    assert_true(cell.point[0].train_seconds == 1.25 && cell.point[1].test_accuracy == 0.6);
    /* An average at the end has changed the weights. */
    report_write("metrics.jsonl", REPORT_METRICS
                 "{\"event\":\"end\",\"train_seconds\":2.5,\"test_accuracy\":0.7}\n");
    assert_int_equal(co_cell_read(&cell), CO_OK);
    assert_int_equal(cell.n_point, 3);
    co_cell_fini(&cell);
}

static void cell_unmeasured_value_is_unknown(void **state)
{
    co_cell cell;

    (void)state;
    report_write("summary.json", "{\"train_seconds\": \"soon\", \"test_loss\": null}");
    report_write("metrics.jsonl", "{\"event\":\"epoch\",\"train_seconds\":1}\n\n{\"event\":3}\n");
    co_cell_init(&cell, "sync", 2, report_dir);
    assert_int_equal(co_cell_read(&cell), CO_OK);
    assert_true(isnan(cell.train_seconds) && isnan(cell.test_loss) && isnan(cell.bytes_sent));
    assert_int_equal(cell.n_point, 0);
    co_cell_fini(&cell);
}

static void cell_damaged_file_is_named(void **state)
{
    static const struct {
        const char *summary, *metrics, *words;
    } cases[] = {
        {"{\"train_seconds\": 1", "", "summary.json is not one JSON object"},
        {"[1]", "", "summary.json is not one JSON object"},
        {"", "", "summary.json"},
        {"{\"a\": 1, \"a\": 2}", "", "summary.json"},
        {"{}", "{\"event\":\"start\"}\n{\"event\":\"ep", "metrics.jsonl:2: "},
        {"{}", "7\n", "metrics.jsonl:1: "},
    };
    co_cell cell;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        report_write("summary.json", cases[i].summary);
        report_write("metrics.jsonl", cases[i].metrics);
        co_cell_init(&cell, "sync", 2, report_dir);
        assert_int_equal(co_cell_read(&cell), CO_E_DATA);
        assert_non_null(strstr(co_error_message(), cases[i].words));
        assert_int_equal(cell.state, CO_CELL_WAITING);
        co_cell_fini(&cell);
    }
    co_cell_init(&cell, "sync", 2, "/nowhere");
    assert_int_equal(co_cell_read(&cell), CO_E_DATA);
}

/* ---- comparisons ---- */

static co_cell report_done(const char *strategy, int ranks, double seconds)
{
    co_cell cell;

    co_cell_init(&cell, strategy, ranks, "runs/it");
    cell.state = CO_CELL_DONE;
    cell.train_seconds = seconds;
    return cell;
}

static void report_speedup_is_over_one_rank(void **state)
{
    co_cell cell[] = {report_done("sync", 1, 12), report_done("sync", 4, 4),
                      report_done("local", 4, 3), report_done("local", 1, 15),
                      report_done("stale", 2, 6), report_done("ssp", 2, 6)};
    co_report report = {.config = "c.yaml", .n_cell = 6, .cell = cell};

    (void)state;
    cell[1].compute_seconds = 3;
    cell[1].sync_seconds = 1;
    cell[5].state = CO_CELL_FAILED;
    co_report_relate(&report);
    assert_true(cell[0].speedup == 1);
    assert_true(cell[1].speedup == 3);
    assert_true(cell[1].predicted == 3); /* 4 / (1 + 1/3) */
    assert_true(cell[2].speedup == 5);   /* over its own, though that comes later */
    assert_true(isnan(cell[2].predicted));
    assert_true(cell[4].speedup == 2); /* over sync's */
    assert_true(isnan(cell[5].speedup));
    cell[0].state = CO_CELL_FAILED;
    co_report_relate(&report);
    assert_true(isnan(cell[1].speedup) && isnan(cell[4].speedup));
    assert_true(cell[2].speedup == 5);
}

/* ---- files ---- */

#define REPORT_NAME "a\"b, c'`$(d)\xff\n"

static void report_special_characters_are_escaped(void **state)
{
    co_cell_point point[] = {{1, 0.5, 2, {0}}, {2, 0.75, 1, {0}}};
    co_cell cell[] = {report_done(REPORT_NAME, 1, 12), report_done(REPORT_NAME, 2, 4)};
    co_report report = {.config = "c\xfe.yaml", .n_cell = 2, .cell = cell};
    char *text;
    json_t *table;

    (void)state;
    cell[0].point = point;
    cell[0].n_point = 2;
    cell[1].state = CO_CELL_FAILED;
    strcpy(cell[1].why, "no \"room\", \xc3");
    co_report_relate(&report);
    assert_int_equal(co_report_write_tables(report_dir, &report), CO_OK);
    assert_int_equal(co_report_write_script(report_dir, &report), CO_OK);
    text = report_read("table.csv");
    assert_non_null(strstr(text, "\n\"a\"\"b, c'`$(d)\xff\n\",1,done,12,,1,"));
    assert_non_null(strstr(text, "\"no \"\"room\"\", \xc3\",\n"));
    co_free(text);
    text = report_read("plots.gp");
    assert_non_null(strstr(text, " title 'a\"b, c''`$(d)\xff '"));
    co_free(text);
    table = json_load_file(report_path("table.json"), JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_is_object(table));
    text = (char *)json_string_value(
        json_object_get(json_array_get(json_object_get(table, "cells"), 1), "reason"));
    assert_string_equal(text, "no \"room\", \\xc3");
    json_decref(table);
}

/* ---- several seeds ---- */

static void spread_unknown_values_are_left_out(void **state)
{
    const double value[] = {1, NAN, 4, 7, INFINITY};
    co_spread s = co_spread_of(value, 5);

    (void)state;
    assert_int_equal(s.n, 3);
    assert_true(s.mean == 4 && s.sd == 3 && s.min == 1 && s.max == 7);
    s = co_spread_of(value, 2);
    assert_true(s.n == 1 && s.mean == 1 && isnan(s.sd) && s.min == 1 && s.max == 1);
    s = co_spread_of(value + 1, 1);
    assert_true(s.n == 0 && isnan(s.mean) && isnan(s.min) && isnan(s.max));
}

#define SEEDS 3

/* Two strategies on one and on two ranks, three seeds each. `b` ends above `a` in accuracy, below
   it in loss. */
static void report_fill_seeds(co_report *report, co_cell *cell, co_cell_point (*point)[2])
{
    static const char *const seeds[] = {"1", "2", "3"};

    *report = (co_report){.config = "c.yaml",
                          .machine = "a 'fast' machine, 2 cores",
                          .seeds = "1, 2, 3",
                          .n_seed = SEEDS,
                          .n_cell = 4 * SEEDS,
                          .cell = cell};
    for (size_t i = 0; i < report->n_cell; i++) {
        const bool b = i >= 2 * SEEDS;
        const double off = (double)(i % SEEDS) * 0.01;

        cell[i] = report_done(b ? "b" : "a", i / SEEDS % 2 ? 2 : 1, i / SEEDS % 2 ? 3 : 6 + off);
        cell[i].seed = seeds[i % SEEDS];
        cell[i].test_accuracy = (b ? 0.9 : 0.8) + off;
        cell[i].test_loss = (b ? 0.3 : 0.5) + off;
        cell[i].bytes_sent = i / SEEDS % 2 ? 1 << 20 : 0;
        cell[i].batch = 64;
        cell[i].epochs = 5;
        strcpy(cell[i].model, "mlp");
        strcpy(cell[i].dataset, "it's data");
        for (size_t k = 0; k < 2; k++)
            point[i][k] = (co_cell_point){(double)k + 1,
                                          cell[i].test_accuracy - 0.5 + 0.5 * (double)k,
                                          k ? cell[i].test_loss : NAN,
                                          {0}};
        cell[i].point = point[i];
        cell[i].n_point = 2;
    }
    co_report_relate(report);
}

/* Checks the order of two texts after `section`. */
static void assert_order(const char *text, const char *section, const char *first,
                         const char *second)
{
    const char *a = strstr(text, section);

    a = a ? strstr(a, first) : NULL;
    if (!a || !strstr(a, second))
        fail_msg("no '%s' before '%s' behind '%s'", first, second, section);
}

static void report_seeds_give_mean_and_standard_deviation(void **state)
{
    co_cell cell[4 * SEEDS];
    co_cell_point point[4 * SEEDS][2];
    co_report report;
    json_t *table, *group;
    char *text;

    (void)state;
    report_fill_seeds(&report, cell, point);
    cell[5].state = CO_CELL_FAILED;
    strcpy(cell[5].why, "no luck");
    cell[5].test_accuracy = NAN;
    /* Each seed is compared with its own run on one rank. */
    assert_true(fabs(cell[4].speedup - 6.01 / 3) < 1e-12);
    assert_int_equal(co_report_write_tables(report_dir, &report), CO_OK);
    text = report_read("table.txt");
    assert_order(text, "Means", "seeds 1, 2, 3", "\na ");
    assert_non_null(strstr(text, " 0.8100  0.0100 "));
    assert_non_null(strstr(text, " 2 of 3 done\n"));
    assert_non_null(strstr(text, "\na, 2 ranks, seed 3: no luck\n"));
    co_free(text);
    text = report_read("table.csv");
    assert_non_null(strstr(text, "\n\"a\",1,done,6,"));
    assert_non_null(strstr(text, ",\"\",2\n"));
    co_free(text);
    table = json_load_file(report_path("table.json"), JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal(json_array_size(json_object_get(table, "cells")), 4 * SEEDS);
    assert_int_equal(json_array_size(json_object_get(table, "groups")), 4);
    group = json_object_get(json_array_get(json_object_get(table, "groups"), 1), "test_accuracy");
    assert_int_equal(json_integer_value(json_object_get(group, "n")), 2);
    assert_true(fabs(json_number_value(json_object_get(group, "mean")) - 0.805) < 1e-9);
    assert_true(json_number_value(json_object_get(group, "max")) == 0.81);
    json_decref(table);
}

/* Titles name what was run; curves have their spread; legends are in the order in which the curves
   end. */
static void plots_titles_name_runs_and_seeds(void **state)
{
    co_cell cell[4 * SEEDS];
    co_cell_point point[4 * SEEDS][2];
    co_report report;
    char *text;

    (void)state;
    report_fill_seeds(&report, cell, point);
    assert_int_equal(co_report_write_script(report_dir, &report), CO_OK);
    text = report_read("plots.gp");
    assert_non_null(strstr(text, "'mlp on it''s data, batch 64, 5 epochs (c.yaml)'"));
    assert_non_null(strstr(text, "'seeds 1, 2, 3; a ''fast'' machine, 2 cores'"));
    for (size_t i = 0; co_report_plots[i]; i++) {
        char output[64];

        snprintf(output, sizeof(output), "set output '%s.'", co_report_plots[i]);
        assert_non_null(strstr(text, output));
    }
    assert_order(text, "set output 'accuracy.'", "with yerrorlines", "unset output");
    assert_order(text, "set output 'accuracy.'", "axis cut", "set arrow"); /* from 0.8 to 0.93 */
    assert_order(text, "set output 'accuracy.'", "$strategy_1 using", "$strategy_0 using");
    assert_order(text, "set output 'loss.'", "$strategy_0 using", "$strategy_1 using");
    assert_order(text, "set output 'loss-time.'", "with filledcurves", "with linespoints");
    assert_order(text, "set output 'accuracy-time.'", "set yrange [0:", "plot"); /* from 0.3 */
    assert_null(strstr(text, "a vertical end"));
    co_free(text);
    for (size_t i = 0; i < report.n_cell; i++) /* weights averaged after training */
        point[i][1].train_seconds = point[i][0].train_seconds;
    assert_int_equal(co_report_write_script(report_dir, &report), CO_OK);
    text = report_read("plots.gp");
    assert_order(text, "a vertical end", "with filledcurves", "every ::1 with yerrorbars");
    co_free(text);
}

/* A run without a measurement writes null. */
static void cell_null_is_unknown(void **state)
{
    co_cell cell;

    (void)state;
    report_write("summary.json", "{\"train_seconds\": null, \"samples_per_second\": null, "
                                 "\"batch\": null, \"model\": null, \"test_accuracy\": null}");
    report_write(
        "metrics.jsonl",
        "{\"event\":\"epoch\",\"train_seconds\":1,\"test_accuracy\":null,\"test_loss\":2}\n"
        "{\"event\":\"epoch\",\"train_seconds\":null,\"test_accuracy\":1}\n");
    co_cell_init(&cell, "sync", 2, report_dir);
    assert_int_equal(co_cell_read(&cell), CO_OK);
    assert_true(isnan(cell.train_seconds) && isnan(cell.test_accuracy) && isnan(cell.batch));
    assert_string_equal(cell.model, "");
    assert_int_equal(cell.n_point, 1);
    assert_true(isnan(cell.point[0].test_accuracy) && cell.point[0].test_loss == 2);
    co_cell_fini(&cell);
}

/* gnuplot, if installed, accepts the script without a message. */
static void plots_script_runs_in_gnuplot(void **state)
{
    co_cell cell[4 * SEEDS];
    co_cell_point point[4 * SEEDS][2];
    co_report report;

    (void)state;
    if (!shell_has("gnuplot")) {
        print_message("skipped: no gnuplot here\n");
        skip();
    }
    report_fill_seeds(&report, cell, point);
    assert_int_equal(co_report_write_script(report_dir, &report), CO_OK);
    assert_int_equal(
        shell_run("cd %s && gnuplot plots.gp >words 2>&1 && ! test -s words", report_dir), 0);
    for (size_t i = 0; co_report_plots[i]; i++) {
        struct stat info;
        char name[64];

        snprintf(name, sizeof(name), "%s.png", co_report_plots[i]);
        assert_int_equal(stat(report_path(name), &info), 0);
        assert_true(info.st_size > 1000);
        unlink(report_path(name));
        snprintf(name, sizeof(name), "%s.svg", co_report_plots[i]);
        assert_int_equal(unlink(report_path(name)), 0);
    }
    unlink(report_path("words"));
}

/* Without values there is no plot, as gnuplot refuses empty ones. */
static void plots_without_values_are_left_out(void **state)
{
    co_cell cell;
    co_report report = {.config = "c.yaml", .n_cell = 1, .cell = &cell};
    char *text;

    (void)state;
    co_cell_init(&cell, "sync", 1, "runs/it");
    co_report_relate(&report);
    assert_int_equal(co_report_write_script(report_dir, &report), CO_OK);
    text = report_read("plots.gp");
    assert_null(strstr(text, "plot $"));
    assert_null(strstr(text, "set output"));
    co_free(text);
}

static void report_missing_folder_is_an_error(void **state)
{
    co_report report = {.config = "c.yaml"};

    (void)state;
    assert_int_equal(co_report_write_tables("/nowhere", &report), CO_E_IO);
    assert_int_equal(co_report_write_script("/nowhere", &report), CO_E_IO);
}

static void report_failed_allocation_is_an_error(void **state)
{
    co_cell cell;
    uint64_t n;

    (void)state;
    report_write("summary.json", REPORT_SUMMARY);
    report_write("metrics.jsonl", REPORT_METRICS);
    co_cell_init(&cell, "sync", 2, report_dir);
    co_mem_fail_at(0);
    assert_int_equal(co_cell_read(&cell), CO_OK);
    n = co_mem_count();
    assert_true(n > 0);
    for (uint64_t k = 1; k <= n; k++) {
        co_mem_fail_at(k);
        assert_int_equal(co_cell_read(&cell), CO_E_NOMEM);
    }
    co_mem_fail_at(0);
    co_cell_fini(&cell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cell_of_finished_run_is_read),
        cmocka_unit_test(cell_unmeasured_value_is_unknown),
        cmocka_unit_test(cell_damaged_file_is_named),
        cmocka_unit_test(report_speedup_is_over_one_rank),
        cmocka_unit_test(report_special_characters_are_escaped),
        cmocka_unit_test(spread_unknown_values_are_left_out),
        cmocka_unit_test(report_seeds_give_mean_and_standard_deviation),
        cmocka_unit_test(plots_titles_name_runs_and_seeds),
        cmocka_unit_test(cell_null_is_unknown),
        cmocka_unit_test(plots_script_runs_in_gnuplot),
        cmocka_unit_test(plots_without_values_are_left_out),
        cmocka_unit_test(report_missing_folder_is_an_error),
        cmocka_unit_test(report_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, report_setup, report_teardown);
}
