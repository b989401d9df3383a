/* page_run.c - a run directory as JSON for the page of `cohort report`, and what is new of it. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/status.h"
#include "core/text.h"
#include "report/page.h"
#include "report/page_events.h"
#include "report/run_list.h"

#define PAGE_MAX_PATH 4096
#define PAGE_MAX_FILE ((size_t)64 << 20)

/* A file or folder of the run directory as it was when it was read. */
typedef struct page_seen {
    struct timespec modified;
    ino_t inode; /* 0: not there */
} page_seen;

/* JSON files that the page has as they are. */
typedef enum page_file { PAGE_SUMMARY, PAGE_PROFILE, PAGE_DATA, PAGE_FILES } page_file;
static const char *const page_file_names[PAGE_FILES] = {"summary", "profile", "data"};

/* The first thing that failed, where the rest is read all the same. */
typedef struct page_failure {
    co_status status;
    char message[CO_STATUS_MESSAGE];
} page_failure;

/* What has been handed out. */
typedef struct page_sent {
    size_t steps, epochs, events, points;
    unsigned generation;
    bool any;
} page_sent;

struct co_page_source {
    char *dir;          /* owned */
    co_run_list list;   /* of one run: its config and figures */
    co_run_state state; /* as of the last update */
    bool is_new;        /* list, a file or a checkpoint has changed since the last news */
    co_page_events events;
    json_t *file[PAGE_FILES]; /* owned: an object, or null */
    json_t *checkpoints;      /* owned: as events */
    page_seen seen[PAGE_FILES], seen_checkpoints, seen_config;
    page_sent sent;
};

static co_status page_no_memory(void)
{
    return co_fail(CO_E_NOMEM, "out of memory");
}

/* Whether a file of the run is not the one that was seen. */
static bool page_has_changed(page_seen *seen, const char *dir, const char *name)
{
    char path[PAGE_MAX_PATH];
    page_seen now = {.inode = 0};
    struct stat info;
    bool changed;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (stat(path, &info) == 0)
        now = (page_seen){info.st_mtim, info.st_ino};
    changed = now.inode != seen->inode || now.modified.tv_sec != seen->modified.tv_sec ||
              now.modified.tv_nsec != seen->modified.tv_nsec;
    *seen = now;
    return changed;
}

static int page_is_checkpoint(const struct dirent *entry)
{
    return strncmp(entry->d_name, "step-", 5) == 0 && entry->d_name[5] >= '0' &&
           entry->d_name[5] <= '9';
}

static co_status page_read_checkpoints(co_page_source *s)
{
    struct dirent **entry = NULL;
    char path[PAGE_MAX_PATH];
    co_status st = CO_OK;
    int n;

    snprintf(path, sizeof(path), "%s/checkpoints", s->dir);
    json_array_clear(s->checkpoints);
    n = scandir(path, &entry, page_is_checkpoint, versionsort);
    for (int i = 0; i < n; i++) {
        json_t *step = json_integer(strtoll(entry[i]->d_name + 5, NULL, 10));

        if (st == CO_OK)
            st = co_page_events_add(s->checkpoints, "checkpoint", step, "kept");
        json_decref(step);
        free(entry[i]);
    }
    free(entry);
    return st;
}

/* A JSON object of the run directory; null if there is no such file. */
static co_status page_read_object(json_t **out, const char *dir, const char *name)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = PAGE_MAX_FILE};
    char path[PAGE_MAX_PATH];
    uint8_t *text = NULL;
    size_t size;
    json_t *object;

    snprintf(path, sizeof(path), "%s/%s.json", dir, name);
    if (!co_fs_exists(path)) {
        *out = json_null();
        return CO_OK;
    }
    CO_TRY(co_fs_read_as(&text, &size, path, &rule));
    object = json_loadb((const char *)text, size, 0, NULL);
    co_free(text);
    if (!json_is_object(object)) {
        json_decref(object);
        return co_fail(CO_E_DATA, "%s: is not a JSON object; it is damaged", path);
    }
    *out = object;
    return CO_OK;
}

/* [["batch", "128"], ...] */
static json_t *page_config(const co_run_entry *run)
{
    json_t *list = json_array();

    for (size_t i = 0; i < run->n_line; i++)
        (void)json_array_append_new(
            list, json_pack("[s, s]", CO_SHOW(run->line[i].key), CO_SHOW(run->line[i].value)));
    return list;
}

static json_t *page_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Config and figures, of the run and of nothing below it. */
static co_status page_read_entry(co_page_source *s)
{
    co_run_list list = {.n = 0};
    co_status st = co_run_list_add(&list, s->dir);

    if (st == CO_OK && (list.n != 1 || strcmp(list.run[0].dir, s->dir) != 0))
        st = co_fail(CO_E_DATA, "%s: is no run directory", CO_SHOW(s->dir));
    if (st != CO_OK) {
        co_run_list_free(&list);
        return st;
    }
    co_run_list_free(&s->list);
    s->list = list;
    s->is_new = true;
    return CO_OK;
}

/* A file that is damaged is read again until it is not. */
static co_status page_update_file(co_page_source *s, int i)
{
    json_t *object = NULL;
    char name[32];
    co_status st;

    snprintf(name, sizeof(name), "%s.json", page_file_names[i]);
    if (!page_has_changed(&s->seen[i], s->dir, name) && s->file[i])
        return CO_OK;
    st = page_read_object(&object, s->dir, page_file_names[i]);
    if (st != CO_OK) {
        s->seen[i] = (page_seen){.inode = 0};
        if (!s->file[i])
            s->file[i] = json_null();
        return st;
    }
    json_decref(s->file[i]);
    s->file[i] = object;
    s->is_new = true;
    return CO_OK;
}

static void page_note(page_failure *first, co_status st)
{
    if (st == CO_OK || first->status != CO_OK)
        return;
    first->status = st;
    snprintf(first->message, sizeof(first->message), "%s", co_error_message());
}

static void page_update_files(co_page_source *s, page_failure *first)
{
    for (int i = 0; i < PAGE_FILES; i++)
        page_note(first, page_update_file(s, i));
    if (page_has_changed(&s->seen_checkpoints, s->dir, "checkpoints")) {
        page_note(first, page_read_checkpoints(s));
        s->is_new = true;
    }
}

/* Figures of the folder are read again where the config, the ranks or the state are others. */
static co_status page_update(co_page_source *s, bool whole)
{
    const size_t events = json_array_size(s->events.list);
    const co_run_state state = s->state;
    page_failure first = {CO_OK, ""};
    bool stale;

    page_note(&first, co_page_events_read(&s->events, s->dir, whole));
    s->state = co_run_state_of(s->dir);
    stale = page_has_changed(&s->seen_config, s->dir, "config.yaml") || !s->list.n ||
            state != s->state || events != json_array_size(s->events.list);
    page_update_files(s, &first);
    if (stale)
        page_note(&first, page_read_entry(s));
    return first.status == CO_OK ? CO_OK : co_fail(first.status, "%s", first.message);
}

co_status co_page_source_update(co_page_source *source)
{
    return page_update(source, false);
}

static json_t *page_events_json(const co_page_source *s)
{
    json_t *list = json_array();

    int bad = json_array_extend(list, s->events.list);

    bad |= json_array_extend(list, s->checkpoints);
    if (!bad)
        return list;
    json_decref(list);
    return NULL;
}

/* The last number of a column; NaN: there is none. */
static double page_last(const co_page_table *table, size_t column)
{
    for (size_t i = table->rows; i-- > 0;)
        if (isfinite(table->value[i * table->columns + column]))
            return table->value[i * table->columns + column];
    return (double)NAN;
}

static double page_figure(const co_page_source *s, double stored, const char *name)
{
    const co_page_table *epochs = &s->events.epochs;
    const double last = page_last(epochs, co_page_table_find(epochs, name));

    return s->state == CO_RUN_FINISHED || isnan(last) ? stored : last;
}

/* A figure of the folder; of a run that has none yet, what it has said at its start. */
static const char *page_text(const co_page_source *s, const char *stored, const char *key)
{
    const char *start = json_string_value(json_object_get(s->events.start, key));

    return *stored || !start ? stored : start;
}

static double page_member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

co_page_figures co_page_source_figures(const co_page_source *source)
{
    const co_run_entry *run = &source->list.run[0];
    const json_t *start = source->events.start;
    const double last = page_last(&source->events.steps, 0), ranks = page_member(start, "ranks");

    return (co_page_figures){
        .model = page_text(source, run->model, "model"),
        .dataset = page_text(source, run->dataset, "dataset"),
        .strategy = page_text(source, run->strategy, "strategy"),
        .ranks = isnan(ranks) ? run->ranks : ranks,
        .steps = last > run->steps || isnan(run->steps) ? last : run->steps,
        .total_steps = page_member(start, "total_steps"),
        .batch = page_member(start, "batch"),
        .rate = page_member(source->events.latest, "samples_per_second"),
        .test_accuracy = page_figure(source, run->test_accuracy, "test_accuracy"),
        .test_loss = page_figure(source, run->test_loss, "test_loss"),
        .state = source->state,
    };
}

const co_page_table *co_page_source_curve(size_t *column, const co_page_source *source,
                                          const char *name)
{
    const co_page_table *steps = &source->events.steps, *epochs = &source->events.epochs;
    const size_t of_steps = co_page_table_find(steps, name);
    const size_t of_epochs = co_page_table_find(epochs, name);
    const size_t n_steps = co_page_table_count(steps, of_steps);
    const bool by_epochs = n_steps < 2 && n_steps < co_page_table_count(epochs, of_epochs);

    *column = by_epochs ? of_epochs : of_steps;
    return by_epochs ? epochs : n_steps ? steps : NULL;
}

/* What changes while a run makes steps. */
static co_status page_pack_figures(json_t **out, const co_page_source *s)
{
    const co_page_figures f = co_page_source_figures(s);

    *out =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:O?}", "state", co_run_state_name(f.state),
                  "ranks", page_number(f.ranks), "steps", page_number(f.steps), "test_accuracy",
                  page_number(f.test_accuracy), "test_loss", page_number(f.test_loss), "points",
                  (json_int_t)s->events.steps.rows, "points_of", (json_int_t)s->events.points,
                  "latest", s->events.latest);
    return *out ? CO_OK : page_no_memory();
}

/* Everything but the tables and what never changes. */
static co_status page_pack(json_t **out, const co_page_source *s)
{
    const co_run_entry *run = &s->list.run[0];
    const co_page_figures f = co_page_source_figures(s);
    json_t *per_epoch = json_object_get(s->events.first, "steps_per_epoch");
    json_t *total = json_object_get(s->events.start, "total_steps");
    json_t *figures, *rest;

    CO_TRY(page_pack_figures(&figures, s));
    rest =
        json_pack("{s:s, s:s, s:s, s:O, s:O, s:O?, s:O?, s:o, s:o, s:O?, s:O?}", "model",
                  CO_SHOW(f.model), "dataset", CO_SHOW(f.dataset), "strategy", CO_SHOW(f.strategy),
                  "summary", s->file[PAGE_SUMMARY], "profile", s->file[PAGE_PROFILE], "classes",
                  json_object_get(s->file[PAGE_DATA], "classes"), "start", s->events.first,
                  "config", page_config(run), "events", page_events_json(s), "steps_per_epoch",
                  per_epoch, "total_steps", total);
    if (!rest || json_object_update(figures, rest) != 0) {
        json_decref(figures);
        json_decref(rest);
        return page_no_memory();
    }
    json_decref(rest);
    *out = figures;
    return CO_OK;
}

co_status co_page_source_json(json_t **out, const co_page_source *source)
{
    const char *slash = strrchr(source->dir, '/');
    json_t *run;
    int bad;

    CO_TRY(page_pack(&run, source));
    bad = json_object_set_new(run, "name",
                              json_string(CO_SHOW(slash && slash[1] ? slash + 1 : source->dir))) |
          json_object_set_new(run, "dir", json_string(CO_SHOW(source->dir))) |
          json_object_set_new(run, "steps_table", co_page_table_json(&source->events.steps, 0)) |
          json_object_set_new(run, "epochs_table", co_page_table_json(&source->events.epochs, 0));
    if (bad) {
        json_decref(run);
        return page_no_memory();
    }
    *out = run;
    return CO_OK;
}

static page_sent page_now(const co_page_source *s)
{
    return (page_sent){.steps = s->events.steps.rows,
                       .epochs = s->events.epochs.rows,
                       .events = json_array_size(s->events.list),
                       .points = s->events.points,
                       .generation = s->events.generation,
                       .any = true};
}

/* {"steps_table": {...}, "epochs_table": {...}} of the rows that have not been handed out. */
static json_t *page_append(const co_page_source *s)
{
    return json_pack("{s:o, s:o}", "steps_table",
                     co_page_table_json(&s->events.steps, s->sent.steps), "epochs_table",
                     co_page_table_json(&s->events.epochs, s->sent.epochs));
}

co_status co_page_source_news(json_t **out, bool *all, co_page_source *source)
{
    const page_sent before = source->sent, now = page_now(source);
    json_t *news;
    bool same;

    *out = NULL;
    *all = before.any && now.generation != before.generation;
    same = before.any && !source->is_new && now.points == before.points &&
           now.epochs == before.epochs && now.events == before.events;
    if (*all || same) {
        source->sent = now;
        source->is_new = false;
        *out = json_null();
        return CO_OK;
    }
    CO_TRY(source->is_new ? page_pack(&news, source) : page_pack_figures(&news, source));
    if (json_object_set_new(news, "append", page_append(source)) != 0) {
        json_decref(news);
        return page_no_memory();
    }
    source->sent = now;
    source->is_new = false;
    *out = news;
    return CO_OK;
}

const char *co_page_source_dir(const co_page_source *source)
{
    return source->dir;
}

bool co_page_source_is_read(const co_page_source *source)
{
    return source->list.n > 0;
}

co_run_state co_page_source_state(const co_page_source *source)
{
    return source->state;
}

void co_page_source_close(co_page_source *source)
{
    if (!source)
        return;
    for (int i = 0; i < PAGE_FILES; i++)
        json_decref(source->file[i]);
    json_decref(source->checkpoints);
    co_page_events_free(&source->events);
    co_run_list_free(&source->list);
    co_free(source->dir);
    co_free(source);
}

co_status co_page_source_open(co_page_source **out, const char *dir, size_t most)
{
    co_page_source *s = co_calloc(1, sizeof(*s));
    size_t n = strlen(dir);
    co_status st;

    if (!s)
        return CO_E_NOMEM;
    while (n > 1 && dir[n - 1] == '/')
        n--;
    s->dir = co_strdup(dir);
    s->checkpoints = json_array();
    st = co_page_events_init(&s->events, most);
    if (st == CO_OK && (!s->dir || !s->checkpoints))
        st = page_no_memory();
    else if (st == CO_OK && n + sizeof("/checkpoints") > PAGE_MAX_PATH)
        st = co_fail(CO_E_USAGE, "%s: the path is too long", CO_SHOW(dir));
    if (st != CO_OK) {
        co_page_source_close(s);
        return st;
    }
    s->dir[n] = '\0';
    *out = s;
    return CO_OK;
}

co_status co_page_run(json_t **out, const char *dir, size_t most)
{
    co_page_source *s = NULL;
    co_status st = co_page_source_open(&s, dir, 0);

    *out = NULL;
    if (st == CO_OK)
        st = page_read_entry(s);
    if (st == CO_OK)
        st = page_update(s, true);
    if (st == CO_OK) {
        co_page_table_thin(&s->events.steps, most, CO_PAGE_LOSS);
        co_page_table_thin(&s->events.epochs, most, 0);
        st = co_page_source_json(out, s);
    }
    co_page_source_close(s);
    return st;
}
