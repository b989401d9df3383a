/*
 * cell.c - read the figures of a run from the files that it has left.
 *
 * The files are checked: they may come from another version, or an editor.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/fs.h"
#include "core/mem.h"
#include "report/report.h"

#define CELL_MAX_PATH    4352
#define CELL_MAX_SUMMARY ((size_t)1 << 20)
#define CELL_MAX_METRICS ((size_t)1 << 30)

void co_cell_init(co_cell *cell, const char *strategy, int ranks, const char *dir)
{
    *cell = (co_cell){.strategy = strategy, .ranks = ranks, .dir = dir};
    cell->train_seconds = cell->samples_per_second = NAN;
    cell->test_accuracy = cell->test_loss = NAN;
    cell->compute_seconds = cell->sync_seconds = cell->bytes_sent = NAN;
    cell->speedup = cell->predicted = cell->batch = cell->epochs = cell->steps = NAN;
    for (int i = 0; i < CO_METRICS_MAX; i++)
        cell->metric[i] = NAN;
}

void co_cell_fini(co_cell *cell)
{
    co_free(cell->point);
    cell->point = NULL;
    cell->n_point = 0;
}

static double cell_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void cell_metrics(double *out, const co_cell *cell, const json_t *object)
{
    char key[64];

    for (int i = 0; cell->metrics && i < cell->metrics->n; i++) {
        snprintf(key, sizeof(key), "test_%s", cell->metrics->metric[i]->name);
        out[i] = cell_number(object, key);
    }
}

static void cell_text(char *out, size_t size, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    snprintf(out, size, "%s", text ? text : "");
}

static co_status cell_read_file(uint8_t **out, size_t *size, const co_cell *cell, const char *file,
                                size_t max)
{
    char path[CELL_MAX_PATH];

    CO_TRY(co_fs_join(path, sizeof(path), cell->dir, file));
    return co_fs_read_as(out, size, path,
                         &(co_open_rule){.status = CO_E_DATA, .own = true, .max = max});
}

static co_status cell_read_summary(co_cell *cell)
{
    uint8_t *text = NULL;
    size_t size = 0;
    json_error_t error;
    json_t *object;

    CO_TRY(cell_read_file(&text, &size, cell, "summary.json", CELL_MAX_SUMMARY));
    object = json_loadb((const char *)text, size, JSON_REJECT_DUPLICATES, &error);
    co_free(text);
    if (!json_is_object(object)) {
        json_decref(object);
        return co_fail(CO_E_DATA, "%s/summary.json is not one JSON object: %s", cell->dir,
                       error.text);
    }
    cell->train_seconds = cell_number(object, "train_seconds");
    cell->samples_per_second = cell_number(object, "samples_per_second");
    cell->compute_seconds = cell_number(object, "compute_seconds");
    cell->sync_seconds = cell_number(object, "sync_seconds");
    cell->test_accuracy = cell_number(object, "test_accuracy");
    cell->test_loss = cell_number(object, "test_loss");
    cell_metrics(cell->metric, cell, object);
    cell->bytes_sent = cell_number(object, "bytes_sent");
    cell->steps = cell_number(object, "steps");
    cell->batch = cell_number(object, "batch");
    cell->epochs = cell_number(object, "epochs");
    cell_text(cell->model, sizeof(cell->model), object, "model");
    cell_text(cell->dataset, sizeof(cell->dataset), object, "dataset");
    json_decref(object);
    return CO_OK;
}

static bool cell_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Add an event to the curve: an epoch, or the end if it was evaluated again. */
static void cell_take_event(co_cell *cell, const json_t *event)
{
    const co_cell_point *last = cell->n_point ? &cell->point[cell->n_point - 1] : NULL;
    const char *kind = json_string_value(json_object_get(event, "event"));
    co_cell_point point = {.train_seconds = cell_number(event, "train_seconds"),
                           .test_accuracy = cell_number(event, "test_accuracy"),
                           .test_loss = cell_number(event, "test_loss")};

    if (!kind || (strcmp(kind, "epoch") != 0 && strcmp(kind, "end") != 0))
        return;
    if (isnan(point.train_seconds) || (isnan(point.test_accuracy) && isnan(point.test_loss)))
        return;
    if (last && last->train_seconds == point.train_seconds &&
        cell_same(last->test_accuracy, point.test_accuracy) &&
        cell_same(last->test_loss, point.test_loss))
        return;
    cell_metrics(point.metric, cell, event);
    cell->point[cell->n_point++] = point;
}

static co_status cell_take_line(co_cell *cell, const char *line, size_t length, size_t number)
{
    json_error_t error;
    json_t *event = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);

    if (!json_is_object(event)) {
        json_decref(event);
        return co_fail(CO_E_DATA, "%s/metrics.jsonl:%zu: not a JSON object: %s", cell->dir, number,
                       error.text);
    }
    cell_take_event(cell, event);
    json_decref(event);
    return CO_OK;
}

static size_t cell_count_lines(const char *text)
{
    size_t n = 1;

    while ((text = strchr(text, '\n'))) {
        text++;
        n++;
    }
    return n;
}

static co_status cell_take_metrics(co_cell *cell, const char *text)
{
    cell->point = co_calloc(cell_count_lines(text), sizeof(*cell->point));
    if (!cell->point)
        return CO_E_NOMEM;
    for (size_t number = 1; *text; number++) {
        size_t length = strcspn(text, "\n");

        if (length > 0)
            CO_TRY(cell_take_line(cell, text, length, number));
        text += length + (text[length] == '\n');
    }
    return CO_OK;
}

static co_status cell_read_metrics(co_cell *cell)
{
    uint8_t *text = NULL;
    size_t size = 0;
    co_status st;

    CO_TRY(cell_read_file(&text, &size, cell, "metrics.jsonl", CELL_MAX_METRICS));
    st = cell_take_metrics(cell, (const char *)text);
    co_free(text);
    return st;
}

co_status co_cell_read(co_cell *cell)
{
    co_cell_fini(cell);
    CO_TRY(cell_read_summary(cell));
    CO_TRY(cell_read_metrics(cell));
    cell->state = CO_CELL_DONE;
    return CO_OK;
}

/* ---- cells compared ---- */

/* The finished cell of this strategy on one rank, with the seed of `like`. */
static const co_cell *cell_find_single(const co_report *report, const char *strategy,
                                       const co_cell *like)
{
    for (size_t i = 0; i < report->n_cell; i++) {
        const co_cell *cell = &report->cell[i];

        if (cell->ranks == 1 && cell->state == CO_CELL_DONE &&
            strcmp(cell->strategy, strategy) == 0 &&
            strcmp(cell->seed ? cell->seed : "", like->seed ? like->seed : "") == 0)
            return cell;
    }
    return NULL;
}

void co_report_relate(co_report *report)
{
    for (size_t i = 0; i < report->n_cell; i++) {
        co_cell *cell = &report->cell[i];
        const co_cell *single = cell_find_single(report, cell->strategy, cell);

        cell->speedup = cell->predicted = NAN;
        if (cell->state != CO_CELL_DONE)
            continue;
        if (!single)
            single = cell_find_single(report, "sync", cell);
        if (single && cell->train_seconds > 0)
            cell->speedup = single->train_seconds / cell->train_seconds;
        if (cell->compute_seconds > 0)
            cell->predicted = cell->ranks / (1 + cell->sync_seconds / cell->compute_seconds);
    }
}
