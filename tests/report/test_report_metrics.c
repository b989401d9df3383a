/* test_report_metrics.c - configured metrics in tables and plots of comparisons. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <jansson.h>

#include "core/fs.h"
#include "core/mem.h"
#include "folder.h"
#include "report/report.h"

static const co_metric_set metrics = {.n = 2, .metric = {&co_metric_mae, &co_metric_r2}};

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(folder_path(name), "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Checks that the file contains both texts, in this order. */
static void assert_has(const char *name, const char *first, const char *second)
{
    uint8_t *bytes = NULL;
    const char *at;
    size_t size;

    assert_int_equal(co_fs_read(&bytes, &size, folder_path(name), 1 << 20, CO_E_DATA), CO_OK);
    at = strstr((const char *)bytes, first);
    if (!at || !strstr(at, second))
        fail_msg("%s: no '%s' before '%s'", name, first, second);
    co_free(bytes);
}

/* A run with real-valued outputs: no accuracy, and an R2 that is undefined. */
static void read_cell(co_cell *cell)
{
    write_file("summary.json", "{\"train_seconds\": 2.5, \"test_accuracy\": null, "
                               "\"test_loss\": 0.5, \"test_mae\": 0.25, \"test_r2\": null}");
    write_file("metrics.jsonl",
               "{\"event\":\"epoch\",\"train_seconds\":1,\"test_loss\":2,\"test_mae\":0.75}\n"
               "{\"event\":\"epoch\",\"train_seconds\":2,\"test_loss\":1,\"test_mae\":0.25}\n");
    co_cell_init(cell, "sync", 1, folder);
    cell->metrics = &metrics;
    assert_int_equal(co_cell_read(cell), CO_OK);
}

static void cell_metrics_of_run_are_read(void **state)
{
    co_cell cell;

    (void)state;
    read_cell(&cell);
    assert_true(cell.metric[0] == 0.25 && isnan(cell.metric[1]));
    assert_true(cell.n_point == 2 && cell.point[0].metric[0] == 0.75);
    co_cell_fini(&cell);
}

static void report_metrics_are_columns_of_tables(void **state)
{
    co_cell cell;
    co_report report = {.config = "c.yaml", .metrics = &metrics, .n_cell = 1, .cell = &cell};
    json_t *table, *of;

    (void)state;
    read_cell(&cell);
    assert_int_equal(co_report_write_tables(folder, &report), CO_OK);
    assert_has("table.txt", "loss      mae       r2", "0.5000   0.2500        -");
    assert_has("table.csv", ",seed,test_mae,test_r2\n", ",0.25,\n");
    report.n_seed = 1;
    assert_int_equal(co_report_write_tables(folder, &report), CO_OK);
    assert_has("table.txt", "mae", "r2");
    table = json_load_file(folder_path("table.json"), JSON_REJECT_DUPLICATES, NULL);
    of = json_array_get(json_object_get(table, "cells"), 0);
    assert_true(json_number_value(json_object_get(of, "test_mae")) == 0.25);
    of = json_object_get(json_array_get(json_object_get(table, "groups"), 0), "test_mae");
    assert_true(json_number_value(json_object_get(of, "mean")) == 0.25);
    json_decref(table);
    co_cell_fini(&cell);
}

static void plots_metrics_have_plots_of_their_own(void **state)
{
    co_cell cell;
    const co_report report = {.config = "c.yaml", .metrics = &metrics, .n_cell = 1, .cell = &cell};
    uint8_t *bytes = NULL;
    size_t size;

    (void)state;
    read_cell(&cell);
    assert_int_equal(co_report_write_script(folder, &report), CO_OK);
    assert_has("plots.gp", "set output 'mae.'", "Test mae after training");
    assert_has("plots.gp", "set output 'mae-time.'", "Test mae during training");
    assert_int_equal(co_fs_read(&bytes, &size, folder_path("plots.gp"), 1 << 20, CO_E_DATA), CO_OK);
    assert_null(strstr((const char *)bytes, "set output 'r2")); /* no plot without values */
    co_free(bytes);
    co_cell_fini(&cell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cell_metrics_of_run_are_read),
        cmocka_unit_test(report_metrics_are_columns_of_tables),
        cmocka_unit_test(plots_metrics_have_plots_of_their_own),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
