/*
 * work.c - times of a step from the files of a profiled run. Does not start runs.
 *
 * A profile has means over a window of steps. Where metrics.jsonl has every step, the steps' own
 * times are draws for stragglers.
 */
#include "plan/work.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/open.h"
#include "core/sort.h"

#define WORK_MAX_FILE  ((size_t)256 << 20)
#define WORK_MAX_RANKS 4096
#define WORK_MAX_DRAWS 100000
#define WORK_MIN_DRAWS 20   /* steps that say something of their distribution */
#define WORK_MAX_VALUE 1e15 /* in any unit of the files; more is damage */
#define WORK_ASSUMED   64   /* equal parts of a backward pass of which nothing is known */

static co_status work_load(uint8_t **out, size_t *size, const char *dir, const char *name)
{
    char path[4096];

    CO_TRY(co_fs_join(path, sizeof(path), dir, name));
    return co_fs_read_as(out, size, path,
                         &(co_open_rule){.status = CO_E_DATA, .own = true, .max = WORK_MAX_FILE});
}

static double work_number(const json_t *object, const char *key)
{
    const double value = json_number_value(json_object_get(object, key));

    return value > 0 && value <= WORK_MAX_VALUE ? value : 0;
}

static const char *work_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* ---- profile.json ---- */

/* Rows that are segments, for those that come again. */
typedef struct work_rows {
    const co_work_names *names;
    const char **name, **op; /* owned; texts are the JSON's */
} work_rows;

/* The last element of the store that belongs to a layer; 0: it has none. */
static size_t work_layer_end(const co_work_names *names, const char *layer)
{
    const size_t length = strlen(layer);
    size_t end = 0;

    for (size_t i = 0; i < names->n; i++)
        if (strncmp(names->name[i], layer, length) == 0 && names->name[i][length] == '.' &&
            names->end[i] > end)
            end = names->end[i];
    return end;
}

/* A kernel of the backward pass. Ranks run the same ones, and a short last batch runs them from a
   plan of its own: times of one kernel add up. */
static void work_add_segment(co_plan_work *w, work_rows *rows, const json_t *row, double seconds)
{
    const char *name = work_text(row, "name"), *op = work_text(row, "op");
    const size_t before = w->n_segment ? w->segment[w->n_segment - 1].end : 0;
    const size_t end = work_layer_end(rows->names, name);

    for (size_t i = 0; i < w->n_segment; i++)
        if (strcmp(rows->name[i], name) == 0 && strcmp(rows->op[i], op) == 0) {
            w->segment[i].seconds += seconds;
            return;
        }
    rows->name[w->n_segment] = name;
    rows->op[w->n_segment] = op;
    w->segment[w->n_segment++] = (co_work_segment){seconds, end > before ? end : before};
}

/* Where the time of a row outside of kernels belongs; NULL: nowhere, as it is not of every step, or
   of the readers. */
static double *work_place(co_plan_work *w, const char *name)
{
    static const char *const rare[] = {"wait for data", "compile a plan", "checkpoint"};

    for (size_t i = 0; i < sizeof(rare) / sizeof(rare[0]); i++)
        if (strcmp(name, rare[i]) == 0)
            return NULL;
    if (strcmp(name, "post gradients") == 0)
        return &w->post;
    if (strcmp(name, "wait for ranks") == 0)
        return &w->take;
    if (strcmp(name, "optimizer") == 0 || strcmp(name, "moving average") == 0)
        return &w->update;
    if (strcmp(name, "between kernels, forward") == 0)
        return &w->forward;
    return strcmp(name, "between kernels, backward") == 0 ? &w->backward : &w->rest;
}

static void work_add_row(co_plan_work *w, work_rows *rows, const json_t *row, double share)
{
    const double seconds = work_number(row, "time_us") * 1e-6 * share;
    const char *pass = work_text(row, "pass");
    double *place = work_place(w, work_text(row, "name"));

    if (strcmp(pass, "forward") == 0) {
        w->forward += seconds;
    } else if (strcmp(pass, "backward") == 0) {
        w->backward += seconds;
        work_add_segment(w, rows, row, seconds);
    } else if (place) {
        *place += seconds;
    }
}

static co_status work_bad_profile(const char *dir, const char *what)
{
    return co_fail(CO_E_DATA,
                   "%s/profile.json %s; write it again with `cohort train CONFIG --profile`", dir,
                   what);
}

static co_status work_rows_open(co_plan_work *w, work_rows *rows, size_t n)
{
    w->segment = co_calloc(n + 1, sizeof(*w->segment));
    rows->name = co_calloc(n + 1, sizeof(*rows->name));
    rows->op = co_calloc(n + 1, sizeof(*rows->op));
    return w->segment && rows->name && rows->op ? CO_OK : CO_E_NOMEM;
}

/* Means over ranks. */
static co_status work_add_ranks(co_plan_work *w, work_rows *rows, const json_t *ranks,
                                const char *dir)
{
    const size_t n = json_array_size(ranks);
    size_t n_row = 0;

    if (n == 0 || n > WORK_MAX_RANKS)
        return work_bad_profile(dir, "has no ranks");
    for (size_t r = 0; r < n; r++)
        n_row += json_array_size(json_object_get(json_array_get(ranks, r), "rows"));
    CO_TRY(work_rows_open(w, rows, n_row));
    for (size_t r = 0; r < n; r++) {
        const json_t *list = json_object_get(json_array_get(ranks, r), "rows");

        for (size_t i = 0; i < json_array_size(list); i++)
            work_add_row(w, rows, json_array_get(list, i), 1.0 / (double)n);
    }
    if (w->n_segment == 0 || !(w->forward > 0))
        return work_bad_profile(dir, "has no kernels, as no step was watched");
    return CO_OK;
}

/* What no kernel of a layer announces is final at the end; time between kernels is shared out. */
static void work_close_segments(co_plan_work *w)
{
    double kernels = 0;

    for (size_t i = 0; i < w->n_segment; i++)
        kernels += w->segment[i].seconds;
    for (size_t i = 0; i < w->n_segment && kernels > 0; i++)
        w->segment[i].seconds *= w->backward / kernels;
    w->segment[w->n_segment - 1].end = w->n;
}

static co_status work_read_profile(co_plan_work *w, const char *dir, const co_work_names *names)
{
    work_rows rows = {.names = names};
    json_t *root = NULL, *ranks;
    uint8_t *text = NULL;
    size_t size = 0;
    co_status st;

    CO_TRY(work_load(&text, &size, dir, "profile.json"));
    root = json_loadb((const char *)text, size, JSON_REJECT_DUPLICATES, NULL);
    co_free(text);
    ranks = json_object_get(root, "per_rank");
    st = root ? work_add_ranks(w, &rows, ranks, dir) : work_bad_profile(dir, "is not JSON");
    if (st == CO_OK) {
        w->ranks = (int)json_array_size(ranks);
        w->batch = work_number(root, "batch") / w->ranks;
        work_close_segments(w);
    }
    co_free(rows.name);
    co_free(rows.op);
    json_decref(root);
    return st == CO_OK && !(w->batch > 0) ? work_bad_profile(dir, "has no batch") : st;
}

/* ---- metrics.jsonl: steps ---- */

static bool work_next_line(const char **line, size_t *n, const char **at, const char *end)
{
    const char *stop;

    if (*at >= end)
        return false;
    stop = memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *n = (size_t)((stop ? stop : end) - *at);
    *at = stop ? stop + 1 : end;
    return true;
}

/* Steps that were logged one by one, without what waited for other ranks. The first tenth of a run
   warms up. */
static void work_take_steps(co_plan_work *w, const char *text, size_t size)
{
    const char *at = text, *line;
    double before = -1, step_before = -1;
    size_t n;

    while (work_next_line(&line, &n, &at, text + size) && w->n_draw < WORK_MAX_DRAWS) {
        json_t *event = json_loadb(line, n, 0, NULL);
        const double step = work_number(event, "step");
        const double own = work_number(event, "train_seconds") - work_number(event, "sync_seconds");

        if (strcmp(work_text(event, "event"), "step") == 0) {
            if (step == step_before + 1 && own > before)
                w->draw[w->n_draw++] = own - before;
            before = own;
            step_before = step;
        }
        json_decref(event);
    }
}

/* The window of a profile may miss what only some steps have: waits for data, ends of epochs. */
static void work_take_rest(co_plan_work *w, double step)
{
    const double known = w->forward + w->backward + w->update;

    if (step - known > w->rest)
        w->rest = step - known;
}

static co_status work_read_steps(co_plan_work *w, const char *dir)
{
    uint8_t *text = NULL;
    size_t size = 0, warm;
    double sum = 0;

    if (work_load(&text, &size, dir, "metrics.jsonl") != CO_OK)
        return CO_OK; /* a profile alone will do */
    w->draw = co_calloc(WORK_MAX_DRAWS, sizeof(*w->draw));
    if (w->draw)
        work_take_steps(w, (const char *)text, size);
    co_free(text);
    if (!w->draw)
        return CO_E_NOMEM;
    warm = w->n_draw / 10;
    w->n_draw -= warm;
    memmove(w->draw, w->draw + warm, w->n_draw * sizeof(*w->draw));
    if (w->n_draw < WORK_MIN_DRAWS)
        w->n_draw = 0;
    co_sort_doubles(w->draw, w->n_draw);
    for (size_t i = 0; i < w->n_draw; i++)
        sum += w->draw[i];
    for (size_t i = 0; i < w->n_draw; i++)
        w->draw[i] *= (double)w->n_draw / sum;
    if (w->n_draw)
        work_take_rest(w, sum / (double)w->n_draw);
    return CO_OK;
}

/* ---- trace.json: readers ---- */

/* One event a line, as src/telemetry/trace.c writes them. */
static co_status work_read_readers(co_plan_work *w, const char *dir)
{
    const char *at, *line, *end;
    double seconds = 0, samples = 0;
    uint8_t *text = NULL;
    size_t size = 0, n;

    if (work_load(&text, &size, dir, "trace.json") != CO_OK)
        return CO_OK;
    at = (const char *)text;
    end = at + size;
    while (work_next_line(&line, &n, &at, end)) {
        json_t *event;

        n -= n > 0 && line[n - 1] == ',';
        event = n > 2 && memmem(line, n, "\"reader\"", 8) ? json_loadb(line, n, 0, NULL) : NULL;
        if (strcmp(work_text(event, "cat"), "reader") == 0) {
            seconds += work_number(event, "dur") * 1e-6;
            samples += work_number(json_object_get(event, "args"), "samples");
        }
        json_decref(event);
    }
    co_free(text);
    w->read = samples > 0 ? seconds / samples : 0;
    return CO_OK;
}

co_status co_work_read(co_plan_work *out, const char *dir, const co_work_names *names)
{
    CO_TRY(work_read_profile(out, dir, names));
    CO_TRY(work_read_steps(out, dir));
    return work_read_readers(out, dir);
}

co_status co_work_assume(co_plan_work *out, double samples_per_second, double batch,
                         double backward)
{
    const double step = batch / samples_per_second;

    out->segment = co_calloc(WORK_ASSUMED, sizeof(*out->segment));
    if (!out->segment)
        return CO_E_NOMEM;
    out->n_segment = WORK_ASSUMED;
    out->batch = batch;
    out->ranks = 1;
    out->backward = backward * step;
    out->forward = step - out->backward;
    for (size_t i = 0; i < WORK_ASSUMED; i++)
        out->segment[i] =
            (co_work_segment){out->backward / WORK_ASSUMED,
                              (size_t)((double)out->n * (double)(i + 1) / WORK_ASSUMED)};
    out->segment[WORK_ASSUMED - 1].end = out->n;
    return CO_OK;
}

void co_work_fini(co_plan_work *work)
{
    co_free(work->tensor);
    co_free(work->segment);
    co_free(work->draw);
    *work = (co_plan_work){.n = 0};
}
