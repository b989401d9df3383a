/* runs.c - which runs are watched, and what is new of them. */
#include "live/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/text.h"

#define RUNS_SCAN_NS UINT64_C(3000000000)

static void runs_drop(co_live_run *run)
{
    if (!run)
        return;
    co_page_source_close(run->source);
    co_ranks_free(&run->ranks);
    co_measured_free(&run->measured);
    co_free(run);
}

/* What can be read of a damaged one is shown, and what is wrong. NULL: the folder is gone. */
static co_status runs_make(co_live_run **out, const char *dir)
{
    co_live_run *run = co_calloc(1, sizeof(*run));
    co_status st = run ? co_page_source_open(&run->source, dir, CO_LIVE_POINTS) : CO_E_NOMEM;

    *out = NULL;
    if (st == CO_OK)
        st = co_page_source_update(run->source);
    if (st == CO_E_NOMEM || !run->source || !co_page_source_is_read(run->source)) {
        runs_drop(run);
        return st == CO_E_NOMEM ? st : CO_OK;
    }
    if (st != CO_OK)
        co_text_show(run->damage, sizeof(run->damage), co_error_message());
    *out = run;
    return CO_OK;
}

static int runs_by_time(const void *a, const void *b)
{
    const co_run_entry *x = a, *y = b;
    const double at = isnan(x->ended) ? 0 : x->ended, other = isnan(y->ended) ? 0 : y->ended;

    if (at != other)
        return at < other ? 1 : -1;
    return strcmp(x->dir, y->dir);
}

static int runs_by_name(const void *a, const void *b)
{
    return strcmp(((const co_run_entry *)a)->dir, ((const co_run_entry *)b)->dir);
}

/* The newest ones, by name, each once. */
static co_status runs_find(co_run_list *list, const co_live_runs *runs)
{
    size_t n = 0;

    for (size_t i = 0; i < runs->n_folder; i++)
        CO_TRY(co_run_list_find(list, runs->folder[i]));
    if (list->n)
        qsort(list->run, list->n, sizeof(*list->run), runs_by_time);
    for (size_t i = 0; i < list->n && n < CO_LIVE_RUNS; i++) {
        const co_run_entry entry = list->run[i];

        if (n && strcmp(entry.dir, list->run[n - 1].dir) == 0)
            continue;
        list->run[i] = list->run[n];
        list->run[n++] = entry;
    }
    if (n)
        qsort(list->run, n, sizeof(*list->run), runs_by_name);
    while (list->n > n)
        co_free(list->run[--list->n].dir);
    return CO_OK;
}

static bool runs_are_same(const co_live_runs *runs, const co_run_list *list)
{
    bool same = runs->n == list->n;

    for (size_t i = 0; same && i < list->n; i++)
        same = strcmp(co_page_source_dir(runs->run[i]->source), list->run[i].dir) == 0;
    return same;
}

/* The run of that folder if it is watched already, taken out. */
static co_live_run *runs_take(co_live_runs *runs, const char *dir)
{
    for (size_t i = 0; i < runs->n; i++)
        if (runs->run[i] && strcmp(co_page_source_dir(runs->run[i]->source), dir) == 0) {
            co_live_run *run = runs->run[i];

            runs->run[i] = NULL;
            return run;
        }
    return NULL;
}

/* Watch the runs of the list instead. */
static co_status runs_replace(co_live_runs *runs, bool *changed, const co_run_list *list)
{
    co_live_run *run[CO_LIVE_RUNS], *before[CO_LIVE_RUNS];
    co_status st = CO_OK;
    size_t n = 0;

    memcpy(before, runs->run, sizeof(before));
    for (size_t i = 0; i < list->n && st == CO_OK; i++) {
        run[n] = runs_take(runs, list->run[i].dir);
        if (!run[n])
            st = runs_make(&run[n], list->run[i].dir);
        n += run[n] != NULL;
    }
    *changed = n != runs->n || memcmp(run, before, n * sizeof(*run)) != 0;
    for (size_t i = 0; i < runs->n; i++)
        runs_drop(runs->run[i]);
    memcpy(runs->run, run, n * sizeof(*run));
    runs->n = n;
    return st;
}

static co_status runs_scan(co_live_runs *runs, bool *changed)
{
    co_run_list list = {.n = 0};
    co_status st = runs_find(&list, runs);

    *changed = false;
    if (st == CO_OK && !runs_are_same(runs, &list))
        st = runs_replace(runs, changed, &list);
    co_run_list_free(&list);
    runs->scan_ns = co_clock_ns() + RUNS_SCAN_NS;
    return st;
}

co_status co_live_runs_open(co_live_runs *runs, const char *const *folder, size_t n)
{
    bool changed;
    co_status st;

    *runs = (co_live_runs){.folder = folder, .n_folder = n};
    st = runs_scan(runs, &changed);
    if (st != CO_OK)
        co_live_runs_close(runs);
    return st;
}

void co_live_runs_close(co_live_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        runs_drop(runs->run[i]);
    runs->n = 0;
}

/* What is there stays, where it cannot be read any more; the page says why. */
static co_status runs_update_one(co_live_run *run)
{
    char damage[sizeof(run->damage)] = "";
    const co_status st = co_page_source_update(run->source);

    if (st == CO_E_NOMEM)
        return st;
    if (st != CO_OK)
        co_text_show(damage, sizeof(damage), co_error_message());
    run->is_measured = co_measured_take(&run->measured) || run->is_measured;
    run->is_new = run->is_new || strcmp(damage, run->damage) != 0;
    memcpy(run->damage, damage, sizeof(damage));
    return CO_OK;
}

static json_t *runs_damage(const co_live_run *run)
{
    return *run->damage ? json_string(run->damage) : json_null();
}

/* Put the news of one run into the list, if there are any. */
static co_status runs_put_news(json_t *list, bool *all, co_live_run *run, size_t at)
{
    json_t *news;
    bool gone;

    CO_TRY(co_page_source_news(&news, &gone, run->source));
    *all = *all || gone;
    if (json_is_null(news) && !run->is_new && !run->is_measured && !run->has_ranks &&
        !run->ranks.status)
        return CO_OK;
    if (json_is_null(news))
        news = json_object();
    (void)json_object_set_new(news, "run", json_integer((json_int_t)at));
    if (run->is_new)
        (void)json_object_set_new(news, "damage", runs_damage(run));
    if (run->has_ranks || run->ranks.status)
        (void)json_object_set_new(news, "now", co_ranks_json(&run->ranks));
    if (run->is_measured)
        (void)json_object_update(news, run->measured.json);
    run->has_ranks = run->ranks.status != NULL;
    run->is_new = run->is_measured = false;
    return json_array_append_new(list, news) == 0 ? CO_OK : co_fail(CO_E_NOMEM, "out of memory");
}

static co_status runs_message(co_live_runs *runs, json_t **message, bool *all)
{
    json_t *list = json_array();
    co_status st = CO_OK;

    for (size_t i = 0; i < runs->n && st == CO_OK; i++) {
        st = runs_update_one(runs->run[i]);
        if (st == CO_OK)
            st = runs_put_news(list, all, runs->run[i], i);
    }
    if (st != CO_OK || json_array_size(list) == 0) {
        json_decref(list);
        *message = json_null();
        return st;
    }
    *message = json_pack("{s:o}", "runs", list);
    return *message ? CO_OK : co_fail(CO_E_NOMEM, "out of memory");
}

co_status co_live_runs_update(co_live_runs *runs, json_t **message, bool *all)
{
    *all = false;
    if (co_clock_ns() >= runs->scan_ns) {
        /* A folder that is gone for a moment takes no run from the page. */
        const co_status st = runs_scan(runs, all);

        if (st == CO_E_NOMEM)
            return st;
    }
    return runs_message(runs, message, all);
}

void co_live_runs_ask(co_live_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        if (co_page_source_state(runs->run[i]->source) == CO_RUN_RUNNING)
            co_ranks_ask(&runs->run[i]->ranks, co_page_source_dir(runs->run[i]->source));
        else
            co_ranks_free(&runs->run[i]->ranks);
}

/* Whether it is measured as of a run that trains, and does not train any more. */
static bool runs_may_restart(const co_live_run *run)
{
    return run->measured.idle && co_page_source_state(run->source) != CO_RUN_RUNNING;
}

co_status co_live_runs_measure(co_live_runs *runs, const co_live_measure *how)
{
    co_status st = CO_OK;
    bool busy = false;

    for (size_t i = 0; i < runs->n; i++)
        busy = busy || (runs->run[i]->measured.child && !runs_may_restart(runs->run[i]));
    for (size_t i = 0; i < runs->n && st == CO_OK && !busy; i++) {
        co_live_run *run = runs->run[i];

        st = co_measured_begin(&run->measured, how, co_page_source_dir(run->source),
                               co_page_source_state(run->source) == CO_RUN_RUNNING);
        busy = run->measured.child != 0;
    }
    return st;
}

co_status co_live_runs_json(json_t **out, const co_live_runs *runs)
{
    json_t *list = json_array();
    co_status st = list ? CO_OK : co_fail(CO_E_NOMEM, "out of memory");

    for (size_t i = 0; i < runs->n && st == CO_OK; i++) {
        json_t *run;

        st = co_page_source_json(&run, runs->run[i]->source);
        if (st != CO_OK)
            break;
        (void)json_object_set_new(run, "damage", runs_damage(runs->run[i]));
        (void)json_object_set_new(run, "now", co_ranks_json(&runs->run[i]->ranks));
        if (runs->run[i]->measured.json)
            (void)json_object_update(run, runs->run[i]->measured.json);
        if (json_array_append_new(list, run) != 0)
            st = co_fail(CO_E_NOMEM, "out of memory");
    }
    if (st != CO_OK) {
        json_decref(list);
        return st;
    }
    *out = list;
    return CO_OK;
}
