/* page_run.c - a run directory as JSON for the page of `cohort report`. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/text.h"
#include "report/page.h"
#include "report/page_table.h"
#include "report/run_list.h"

#define PAGE_MAX_PATH    4096
#define PAGE_MAX_LINE    ((size_t)1 << 20)
#define PAGE_MAX_METRICS ((uint64_t)8 << 30)
#define PAGE_MAX_FILE    ((size_t)64 << 20)
#define PAGE_MAX_EVENTS  1000 /* that are listed */

static const char *const page_steps[] = {
    "step", "wall_seconds",  "train_loss", "train_accuracy", "samples_per_second",
    "lr",   "gradient_norm", NULL};
static const char *const page_epochs[] = {
    "step",      "epoch",         "wall_seconds", "train_loss", "train_accuracy",
    "test_loss", "test_accuracy", "lr",           NULL};
#define PAGE_LOSS 2 /* column of page_steps by which rows are chosen */

typedef struct page_run {
    const char *dir;
    co_page_table steps, epochs;
    size_t points;  /* of steps, before some are left out */
    json_t *events; /* owned: array */
    json_t *start;  /* owned: the first event; NULL: none */
} page_run;

static co_status page_no_memory(void)
{
    return co_fail(CO_E_NOMEM, "out of memory");
}

static co_status page_add_event(page_run *p, const char *kind, const json_t *step, const char *text)
{
    if (json_array_size(p->events) >= PAGE_MAX_EVENTS)
        return CO_OK;
    if (json_array_append_new(p->events,
                              json_pack("{s:s, s:O?, s:s}", "event", CO_SHOW(kind), "step",
                                        (json_t *)(uintptr_t)step, "text", CO_SHOW(text))) != 0)
        return page_no_memory();
    return CO_OK;
}

/* The start of ranks, and why. */
static co_status page_take_start(page_run *p, const json_t *event, const char *kind)
{
    const char *cause = json_string_value(json_object_get(event, "cause"));
    const json_t *ranks = json_object_get(event, "ranks");
    char text[512];

    if (!p->start)
        p->start = json_deep_copy(event);
    snprintf(text, sizeof(text), "%lld ranks%s%s", (long long)json_integer_value(ranks),
             cause ? "; " : "", cause ? CO_SHOW(cause) : "");
    return page_add_event(p, kind, json_object_get(event, "first_step"), text);
}

static co_status page_take_event(page_run *p, const json_t *event)
{
    const char *kind = json_string_value(json_object_get(event, "event"));

    if (!kind)
        return CO_OK;
    if (strcmp(kind, "step") == 0)
        return co_page_table_add(&p->steps, event);
    if (strcmp(kind, "epoch") == 0)
        return co_page_table_add(&p->epochs, event);
    if (strcmp(kind, "end") == 0)
        return page_add_event(p, kind, json_object_get(event, "step"), "");
    return page_take_start(p, event, kind);
}

/* The last line may be cut, as a run writes it; any other has to be an event. */
static co_status page_take_lines(page_run *p, FILE *file, const char *path, char *line)
{
    for (size_t number = 1; fgets(line, PAGE_MAX_LINE, file); number++) {
        const size_t n = strlen(line);
        json_t *event = json_loadb(line, n, 0, NULL);
        co_status st = CO_OK;

        if (json_is_object(event))
            st = page_take_event(p, event);
        else if (n > 0 && line[n - 1] == '\n')
            st = co_fail(CO_E_DATA, "%s:%zu: not a JSON object", path, number);
        json_decref(event);
        CO_TRY(st);
    }
    return CO_OK;
}

static co_status page_read_metrics(page_run *p)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = PAGE_MAX_METRICS};
    char path[PAGE_MAX_PATH], *line;
    FILE *file;
    co_status st;

    snprintf(path, sizeof(path), "%s/metrics.jsonl", p->dir);
    if (!co_fs_exists(path))
        return CO_OK;
    CO_TRY(co_open_stream(&file, NULL, path, &rule));
    line = co_calloc(PAGE_MAX_LINE, 1);
    st = line ? page_take_lines(p, file, path, line) : CO_E_NOMEM;
    co_free(line);
    fclose(file);
    p->points = p->steps.rows;
    co_page_table_thin(&p->steps, CO_PAGE_MAX_POINTS, PAGE_LOSS);
    co_page_table_thin(&p->epochs, CO_PAGE_MAX_POINTS, 0);
    return st;
}

static int page_is_checkpoint(const struct dirent *entry)
{
    return strncmp(entry->d_name, "step-", 5) == 0 && entry->d_name[5] >= '0' &&
           entry->d_name[5] <= '9';
}

static co_status page_read_checkpoints(page_run *p)
{
    struct dirent **entry = NULL;
    char path[PAGE_MAX_PATH];
    co_status st = CO_OK;
    int n;

    snprintf(path, sizeof(path), "%s/checkpoints", p->dir);
    n = scandir(path, &entry, page_is_checkpoint, versionsort);
    for (int i = 0; i < n; i++) {
        json_t *step = json_integer(strtoll(entry[i]->d_name + 5, NULL, 10));

        if (st == CO_OK)
            st = page_add_event(p, "checkpoint", step, "kept");
        json_decref(step);
        free(entry[i]);
    }
    free(entry);
    return st;
}

/* A JSON object of the run directory; null if there is no such file. */
static co_status page_read_object(json_t **out, const char *dir, const char *file)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = PAGE_MAX_FILE};
    char path[PAGE_MAX_PATH];
    uint8_t *text = NULL;
    size_t size;

    *out = json_null();
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    if (!co_fs_exists(path))
        return CO_OK;
    CO_TRY(co_fs_read_as(&text, &size, path, &rule));
    *out = json_loadb((const char *)text, size, 0, NULL);
    co_free(text);
    if (json_is_object(*out))
        return CO_OK;
    json_decref(*out);
    *out = NULL;
    return co_fail(CO_E_DATA, "%s: is not a JSON object; it is damaged", path);
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

static co_status page_pack(json_t **out, const page_run *p, const co_run_entry *run)
{
    const json_t *per_epoch = json_object_get(p->start, "steps_per_epoch");
    const char *slash = strrchr(p->dir, '/');
    json_t *summary, *profile, *data;

    CO_TRY(page_read_object(&summary, p->dir, "summary.json"));
    CO_TRY(page_read_object(&profile, p->dir, "profile.json"));
    CO_TRY(page_read_object(&data, p->dir, "data.json"));
    *out = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:O?, s:O?, s:I, s:I, s:o, "
        "s:o, s:o, s:O, s:O?}",
        "name", CO_SHOW(slash && slash[1] ? slash + 1 : p->dir), "dir", CO_SHOW(p->dir), "state",
        co_run_state_name(run->state), "model", CO_SHOW(run->model), "dataset",
        CO_SHOW(run->dataset), "strategy", CO_SHOW(run->strategy), "ranks", page_number(run->ranks),
        "steps", page_number(run->steps), "test_accuracy", page_number(run->test_accuracy),
        "test_loss", page_number(run->test_loss), "summary", summary, "profile", profile, "classes",
        json_object_get(data, "classes"), "start", p->start, "points", (json_int_t)p->steps.rows,
        "points_of", (json_int_t)p->points, "config", page_config(run), "steps_table",
        co_page_table_json(&p->steps), "epochs_table", co_page_table_json(&p->epochs), "events",
        p->events, "steps_per_epoch", (json_t *)(uintptr_t)per_epoch);
    json_decref(data);
    return *out ? CO_OK : page_no_memory();
}

static co_status page_read(json_t **out, const co_run_entry *run)
{
    page_run p = {.dir = run->dir, .events = json_array()};
    co_status st;

    co_page_table_init(&p.steps, page_steps);
    co_page_table_init(&p.epochs, page_epochs);
    st = p.events ? page_read_metrics(&p) : page_no_memory();
    if (st == CO_OK)
        st = page_read_checkpoints(&p);
    if (st == CO_OK)
        st = page_pack(out, &p, run);
    co_page_table_free(&p.steps);
    co_page_table_free(&p.epochs);
    json_decref(p.events);
    json_decref(p.start);
    return st;
}

co_status co_page_run(json_t **out, const char *dir)
{
    co_run_list list = {.n = 0};
    char path[PAGE_MAX_PATH];
    size_t n = strlen(dir);
    co_status st;

    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (n >= sizeof(path))
        return co_fail(CO_E_USAGE, "%s: the path is too long", dir);
    memcpy(path, dir, n);
    path[n] = '\0';
    *out = NULL;
    st = co_run_list_add(&list, path);
    if (st == CO_OK && (list.n != 1 || strcmp(list.run[0].dir, path) != 0))
        st = co_fail(CO_E_DATA, "%s: is no run directory", CO_SHOW(path));
    if (st == CO_OK)
        st = page_read(out, &list.run[0]);
    co_run_list_free(&list);
    return st;
}
