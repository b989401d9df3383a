/*
 * table.c - write a comparison as tables for spreadsheets (CSV) and for programs (JSON).
 *
 * Both have plain numbers, with the unit in the name, under the names of summary.json.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/text.h"
#include "report/report.h"
#include "telemetry/json.h"

#define TABLE_MAX_PATH 4352

static int table_put_text(FILE *out, const co_report *report)
{
    co_report_print(out, report);
    return 0;
}

/* ---- CSV (RFC 4180) ---- */

static void table_csv_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* An unknown number is an empty field. */
static void table_csv_real(FILE *out, double value)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.9g", value);
}

static int table_put_csv(FILE *out, const co_report *report)
{
    fprintf(out, "strategy,ranks,status,train_seconds,samples_per_second,speedup,"
                 "predicted_speedup,compute_seconds,sync_seconds,test_accuracy,test_loss,"
                 "bytes_sent,reason,seed");
    for (int i = 0; report->metrics && i < report->metrics->n; i++)
        fprintf(out, ",test_%s", report->metrics->metric[i]->name);
    fputc('\n', out);
    for (size_t i = 0; i < report->n_cell; i++) {
        const co_cell *cell = &report->cell[i];
        const double numbers[] = {cell->train_seconds, cell->samples_per_second, cell->speedup,
                                  cell->predicted,     cell->compute_seconds,    cell->sync_seconds,
                                  cell->test_accuracy, cell->test_loss};

        table_csv_text(out, cell->strategy);
        fprintf(out, ",%d,%s", cell->ranks, co_cell_state_name(cell->state));
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
            table_csv_real(out, numbers[k]);
        if (isfinite(cell->bytes_sent))
            fprintf(out, ",%.0f,", cell->bytes_sent);
        else
            fprintf(out, ",,");
        table_csv_text(out, cell->why);
        fprintf(out, ",%s", cell->seed ? cell->seed : "");
        for (int k = 0; report->metrics && k < report->metrics->n; k++)
            table_csv_real(out, cell->metric[k]);
        fputc('\n', out);
    }
    return 0;
}

/* ---- JSON ---- */

/* File names, and messages of a failed program, may be no UTF-8. */
static int table_json_text(json_t *object, const char *key, const char *text)
{
    return json_put_text(object, key, CO_UTF8(text));
}

static int table_json_cell(json_t *cells, const co_cell *cell)
{
    json_t *object = json_object();
    int bad = table_json_text(object, "strategy", cell->strategy) |
              json_put_count(object, "ranks", (uint64_t)cell->ranks) |
              json_put_text(object, "status", co_cell_state_name(cell->state)) |
              json_put_real(object, "train_seconds", cell->train_seconds) |
              json_put_real(object, "samples_per_second", cell->samples_per_second) |
              json_put_real(object, "speedup", cell->speedup) |
              json_put_real(object, "predicted_speedup", cell->predicted) |
              json_put_real(object, "compute_seconds", cell->compute_seconds) |
              json_put_real(object, "sync_seconds", cell->sync_seconds) |
              json_put_real(object, "test_accuracy", cell->test_accuracy) |
              json_put_real(object, "test_loss", cell->test_loss) |
              table_json_text(object, "run_dir", cell->dir);

    for (int i = 0; cell->metrics && i < cell->metrics->n; i++) {
        char key[64];

        snprintf(key, sizeof(key), "test_%s", cell->metrics->metric[i]->name);
        bad |= json_put_real(object, key, cell->metric[i]);
    }
    bad |= json_object_set_new(
        object, "bytes_sent",
        isfinite(cell->bytes_sent) ? json_integer((json_int_t)cell->bytes_sent) : json_null());
    if (cell->seed)
        bad |= table_json_text(object, "seed", cell->seed);
    if (cell->why[0])
        bad |= table_json_text(object, "reason", cell->why);
    return json_array_append_new(cells, object) | bad;
}

static int table_json_spread(json_t *object, const char *name, const co_spread *spread)
{
    json_t *value = json_object();
    const int bad =
        json_put_count(value, "n", spread->n) | json_put_real(value, "mean", spread->mean) |
        json_put_real(value, "sd", spread->sd) | json_put_real(value, "min", spread->min) |
        json_put_real(value, "max", spread->max);

    return json_object_set_new(object, name, value) | bad;
}

json_t *co_report_groups(const co_report *report)
{
    json_t *groups = json_array();
    int bad = 0;

    for (size_t i = 0, end; i < report->n_cell; i = end) {
        json_t *group = json_object();

        end = co_report_group_end(report, i);
        bad |= table_json_text(group, "strategy", report->cell[i].strategy) |
               json_put_count(group, "ranks", (uint64_t)report->cell[i].ranks);
        for (co_figure f = 0; f < co_report_figures(report); f++) {
            const co_spread spread = co_report_spread(report, i, end, f);
            char name[64];

            bad |= table_json_spread(group, co_figure_name(name, sizeof(name), report, f), &spread);
        }
        bad |= json_array_append_new(groups, group);
    }
    if (!bad)
        return groups;
    json_decref(groups);
    return NULL;
}

static int table_put_json(FILE *out, const co_report *report)
{
    json_t *object = json_object(), *cells = json_array();
    int bad = table_json_text(object, "config", report->config);

    for (size_t i = 0; i < report->n_cell; i++)
        bad |= table_json_cell(cells, &report->cell[i]);
    bad |= json_object_set_new(object, "cells", cells);
    if (report->n_seed)
        bad |= json_object_set_new(object, "groups", co_report_groups(report));
    if (!bad)
        /* A failed write sets the stream's error flag, which the commit checks. */
        (void)json_dumpf(object, out, JSON_INDENT(2) | JSON_STYLE);
    json_decref(object);
    fputc('\n', out);
    return bad;
}

static co_status table_write(const char *dir, const char *file, const co_report *report,
                             int (*put)(FILE *out, const co_report *report))
{
    char path[TABLE_MAX_PATH];
    co_atomic_file *out;

    CO_TRY(co_fs_join(path, sizeof(path), dir, file));
    CO_TRY(co_atomic_open(&out, path));
    if (put(co_atomic_stream(out), report) != 0) {
        co_atomic_discard(out);
        return co_fail(CO_E_NOMEM, "out of memory while writing %s", path);
    }
    return co_atomic_commit(out);
}

co_status co_report_write_tables(const char *dir, const co_report *report)
{
    CO_TRY(table_write(dir, "table.txt", report, table_put_text));
    CO_TRY(table_write(dir, "table.csv", report, table_put_csv));
    return table_write(dir, "table.json", report, table_put_json);
}
