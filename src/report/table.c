/*
 * table.c - the cells of a comparison as a table: for people, for spreadsheets, for programs.
 *
 * The latter two carry plain numbers with the unit in the name, under the names of summary.json.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "report/report.h"
#include "telemetry/format.h"
#include "telemetry/json.h"

#define TABLE_MAX_PATH 4352
#define TABLE_MAX_NAME 56 /* of a strategy, before columns get out of line */

static const char *table_state(co_cell_state state)
{
    switch (state) {
    case CO_CELL_WAITING:
        return "not run";
    case CO_CELL_DONE:
        return "done";
    case CO_CELL_FAILED:
        return "failed";
    case CO_CELL_STOPPED:
        return "stopped";
    }
    return "";
}

/* ---- text ---- */

typedef char table_text[24];

/* A number with so many decimals, "-" when unknown. */
static const char *table_real(table_text out, double value, int decimals)
{
    if (isfinite(value))
        snprintf(out, sizeof(table_text), "%.*f", decimals, value);
    else
        snprintf(out, sizeof(table_text), "-");
    return out;
}

static const char *table_rate(table_text out, double value)
{
    if (value >= 0 && value < 1e18)
        return co_format_rate(out, sizeof(table_text), value);
    return table_real(out, NAN, 0);
}

static const char *table_bytes(table_text out, double value)
{
    if (value >= 0 && value < 1e18)
        return co_format_bytes(out, sizeof(table_text), (uint64_t)value);
    return table_real(out, NAN, 0);
}

/* The part of its steps that a rank has spent in the strategy. */
static const char *table_share(table_text out, const co_cell *cell)
{
    double share = cell->sync_seconds / (cell->sync_seconds + cell->compute_seconds);

    if (isfinite(share))
        snprintf(out, sizeof(table_text), "%.1f %%", 100 * share);
    else
        snprintf(out, sizeof(table_text), "-");
    return out;
}

static int table_name_width(const co_report *report)
{
    size_t width = strlen("strategy");

    for (size_t i = 0; i < report->n_cell; i++)
        if (strlen(report->cell[i].strategy) > width)
            width = strlen(report->cell[i].strategy);
    return width < TABLE_MAX_NAME ? (int)width : TABLE_MAX_NAME;
}

static void table_print_cell(FILE *out, const co_cell *cell, int width)
{
    table_text train, rate, speedup, predicted, sync, accuracy, loss, sent;

    fprintf(out, "%-*s  %5d  %8s  %9s  %7s  %9s  %6s  %8s  %7s  %9s  %s\n", width, cell->strategy,
            cell->ranks, table_real(train, cell->train_seconds, 2),
            table_rate(rate, cell->samples_per_second), table_real(speedup, cell->speedup, 2),
            table_real(predicted, cell->predicted, 2), table_share(sync, cell),
            table_real(accuracy, cell->test_accuracy, 4), table_real(loss, cell->test_loss, 4),
            table_bytes(sent, cell->bytes_sent), table_state(cell->state));
}

void co_report_print(FILE *out, const co_report *report)
{
    const int width = table_name_width(report);
    bool failed = false;

    fprintf(out, "%-*s  %5s  %8s  %9s  %7s  %9s  %6s  %8s  %7s  %9s  %s\n", width, "strategy",
            "ranks", "time [s]", "samples/s", "speedup", "predicted", "sync", "accuracy", "loss",
            "sent", "status");
    for (size_t i = 0; i < report->n_cell; i++) {
        table_print_cell(out, &report->cell[i], width);
        failed = failed || report->cell[i].why[0];
    }
    if (failed)
        fprintf(out, "\n");
    for (size_t i = 0; i < report->n_cell; i++) {
        const co_cell *cell = &report->cell[i];

        if (cell->why[0])
            fprintf(out, "%s, %d rank%s: %s\n", cell->strategy, cell->ranks,
                    cell->ranks == 1 ? "" : "s", cell->why);
    }
}

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
                 "bytes_sent,reason\n");
    for (size_t i = 0; i < report->n_cell; i++) {
        const co_cell *cell = &report->cell[i];
        const double numbers[] = {cell->train_seconds, cell->samples_per_second, cell->speedup,
                                  cell->predicted,     cell->compute_seconds,    cell->sync_seconds,
                                  cell->test_accuracy, cell->test_loss};

        table_csv_text(out, cell->strategy);
        fprintf(out, ",%d,%s", cell->ranks, table_state(cell->state));
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
            table_csv_real(out, numbers[k]);
        if (isfinite(cell->bytes_sent))
            fprintf(out, ",%.0f,", cell->bytes_sent);
        else
            fprintf(out, ",,");
        table_csv_text(out, cell->why);
        fputc('\n', out);
    }
    return 0;
}

/* ---- JSON ---- */

/* JSON is UTF-8, which names of files and words of a failed program need not be. */
static int table_json_text(json_t *object, const char *key, const char *text)
{
    json_t *value = json_string(text);
    char *ascii = value ? NULL : co_strdup(text);

    for (char *c = ascii; c && *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    if (ascii)
        value = json_string(ascii);
    co_free(ascii);
    return json_object_set_new(object, key, value);
}

static int table_json_cell(json_t *cells, const co_cell *cell)
{
    json_t *object = json_object();
    int bad = table_json_text(object, "strategy", cell->strategy) |
              json_put_count(object, "ranks", (uint64_t)cell->ranks) |
              json_put_text(object, "status", table_state(cell->state)) |
              json_put_real(object, "train_seconds", cell->train_seconds) |
              json_put_real(object, "samples_per_second", cell->samples_per_second) |
              json_put_real(object, "speedup", cell->speedup) |
              json_put_real(object, "predicted_speedup", cell->predicted) |
              json_put_real(object, "compute_seconds", cell->compute_seconds) |
              json_put_real(object, "sync_seconds", cell->sync_seconds) |
              json_put_real(object, "test_accuracy", cell->test_accuracy) |
              json_put_real(object, "test_loss", cell->test_loss) |
              table_json_text(object, "run_dir", cell->dir);

    bad |= json_object_set_new(
        object, "bytes_sent",
        isfinite(cell->bytes_sent) ? json_integer((json_int_t)cell->bytes_sent) : json_null());
    if (cell->why[0])
        bad |= table_json_text(object, "reason", cell->why);
    return json_array_append_new(cells, object) | bad;
}

static int table_put_json(FILE *out, const co_report *report)
{
    json_t *object = json_object(), *cells = json_array();
    int bad = table_json_text(object, "config", report->config);

    for (size_t i = 0; i < report->n_cell; i++)
        bad |= table_json_cell(cells, &report->cell[i]);
    bad |= json_object_set_new(object, "cells", cells);
    if (!bad)
        /* A failed write leaves the stream's error flag set, which commit finds. */
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
    int n = snprintf(path, sizeof(path), "%s/%s", dir, file);

    if (n < 0 || (size_t)n >= sizeof(path))
        return co_fail(CO_E_USAGE, "%s: the path is too long", dir);
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
