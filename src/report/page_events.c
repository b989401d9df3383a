/* page_events.c - metrics.jsonl as tables of steps and epochs, and a list of other events. */
#include "report/page_events.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/text.h"

#define EVENTS_MAX_PATH 4096
#define EVENTS_MAX_LINE ((size_t)1 << 20)
#define EVENTS_MAX_FILE ((uint64_t)8 << 30)

static const char *const events_steps[] = {
    "step", "wall_seconds",  "train_loss", "train_accuracy", "samples_per_second",
    "lr",   "gradient_norm", NULL};
static const char *const events_epochs[] = {
    "step", "epoch", "wall_seconds", "samples_per_second", "lr",
#define METRIC(name) "train_" #name, "test_" #name,
#include "metrics/list.h"
#undef METRIC
    NULL,
};

static co_status events_no_memory(void)
{
    return co_fail(CO_E_NOMEM, "out of memory");
}

co_status co_page_events_init(co_page_events *events, size_t most)
{
    *events = (co_page_events){.most = most, .list = json_array()};
    co_page_table_init(&events->steps, events_steps);
    co_page_table_init(&events->epochs, events_epochs);
    return events->list ? CO_OK : events_no_memory();
}

void co_page_events_free(co_page_events *events)
{
    co_page_table_free(&events->steps);
    co_page_table_free(&events->epochs);
    json_decref(events->list);
    json_decref(events->start);
    json_decref(events->first);
    json_decref(events->latest);
    *events = (co_page_events){0};
}

co_status co_page_events_add(json_t *list, const char *kind, json_t *step, const char *text)
{
    if (json_array_size(list) >= CO_PAGE_MAX_EVENTS)
        return CO_OK;
    if (json_array_append_new(list, json_pack("{s:s, s:O?, s:s}", "event", CO_SHOW(kind), "step",
                                              step, "text", CO_SHOW(text))))
        return events_no_memory();
    return CO_OK;
}

/* The start of ranks, and why. */
static co_status events_take_start(co_page_events *e, const json_t *event, const char *kind)
{
    const char *cause = json_string_value(json_object_get(event, "cause"));
    const json_t *ranks = json_object_get(event, "ranks");
    char text[512];

    json_decref(e->start);
    e->start = json_deep_copy(event);
    if (!e->first)
        e->first = json_incref(e->start);
    snprintf(text, sizeof(text), "%lld rank%s%s%s", (long long)json_integer_value(ranks),
             co_plural((uint64_t)json_integer_value(ranks)), cause ? "; " : "",
             cause ? CO_SHOW(cause) : "");
    return co_page_events_add(e->list, kind, json_object_get(event, "first_step"), text);
}

static co_status events_take_row(co_page_events *e, co_page_table *table, const json_t *event,
                                 size_t by)
{
    CO_TRY(co_page_table_add(table, event));
    if (e->most && table->rows >= 2 * e->most) {
        co_page_table_thin_even(table, e->most, by);
        e->generation++;
    }
    return CO_OK;
}

static void events_keep(co_page_events *e, json_t *event)
{
    json_decref(e->latest);
    e->latest = json_incref(event);
}

static co_status events_take_failure(co_page_events *e, const json_t *event)
{
    const char *reason = json_string_value(json_object_get(event, "reason"));

    return co_page_events_add(e->list, "failed", json_object_get(event, "step"),
                              reason ? reason : "");
}

static co_status events_take(co_page_events *e, json_t *event)
{
    const char *kind = json_string_value(json_object_get(event, "event"));

    if (!kind)
        return CO_OK;
    if (strcmp(kind, "step") == 0 || strcmp(kind, "epoch") == 0 || strcmp(kind, "end") == 0)
        events_keep(e, event);
    if (strcmp(kind, "step") == 0) {
        e->points++;
        return events_take_row(e, &e->steps, event, CO_PAGE_LOSS);
    }
    if (strcmp(kind, "epoch") == 0)
        return events_take_row(e, &e->epochs, event, 0);
    if (strcmp(kind, "failed") == 0)
        return events_take_failure(e, event);
    if (strcmp(kind, "end") == 0)
        return co_page_events_add(e->list, kind, json_object_get(event, "step"), "");
    return events_take_start(e, event, kind);
}

static co_status events_take_line(co_page_events *e, const char *line, size_t n, const char *path)
{
    json_t *event = json_loadb(line, n, 0, NULL);
    co_status st;

    if (json_is_object(event))
        st = events_take(e, event);
    else
        st = co_fail(CO_E_DATA, "%s:%zu: not a JSON object", path, e->line + 1);
    e->line += st == CO_OK; /* a line that is damaged is read again */
    json_decref(event);
    return st;
}

/* `n` bytes before the place have been taken. */
static void events_move(co_page_events *e, const char *taken, size_t n)
{
    const size_t m = n < CO_PAGE_MARK ? n : CO_PAGE_MARK;

    memcpy(e->mark, taken + n - m, m);
    e->n_mark = m;
    e->at += (off_t)n;
}

/* The whole lines of `have` bytes; *used: how many bytes they are. */
static co_status events_take_lines(co_page_events *e, size_t *used, const char *text, size_t have,
                                   const char *path)
{
    const char *end;

    *used = 0;
    while ((end = memchr(text + *used, '\n', have - *used)) != NULL) {
        const char *line = text + *used;
        const size_t n = (size_t)(end - line) + 1;

        CO_TRY(events_take_line(e, line, n, path));
        events_move(e, line, n);
        *used += n;
    }
    return CO_OK;
}

/* A run may be about to write the rest of the last line: that is no error. */
static co_status events_take_rest(co_page_events *e, const char *text, size_t n)
{
    json_t *event = json_loadb(text, n, 0, NULL);
    const co_status st = json_is_object(event) ? events_take(e, event) : CO_OK;

    json_decref(event);
    return st;
}

static co_status events_take_file(co_page_events *e, char *text, int fd, bool whole,
                                  const char *path)
{
    size_t have = 0, used;

    for (;;) {
        const ssize_t got = pread(fd, text + have, EVENTS_MAX_LINE - have, e->at + (off_t)have);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return co_fail(CO_E_IO, "%s: cannot read it: %s", path, strerror(errno));
        if (got == 0)
            return whole && have ? events_take_rest(e, text, have) : CO_OK;
        have += (size_t)got;
        CO_TRY(events_take_lines(e, &used, text, have, path));
        have -= used;
        memmove(text, text + used, have);
        if (have == EVENTS_MAX_LINE)
            return co_fail(CO_E_DATA, "%s:%zu: a line of more than %zu bytes, which no run writes",
                           path, e->line + 1, EVENTS_MAX_LINE);
    }
}

/* Whether the file has what was read of it, and perhaps more. */
static bool events_is_same(const co_page_events *e, const struct stat *info, int fd)
{
    char mark[CO_PAGE_MARK];

    return e->device == info->st_dev && e->inode == info->st_ino && e->at <= info->st_size &&
           pread(fd, mark, e->n_mark, e->at - (off_t)e->n_mark) == (ssize_t)e->n_mark &&
           memcmp(mark, e->mark, e->n_mark) == 0;
}

static co_status events_restart(co_page_events *e)
{
    const size_t most = e->most;
    const unsigned generation = e->generation + 1;

    co_page_events_free(e);
    CO_TRY(co_page_events_init(e, most));
    e->generation = generation;
    return CO_OK;
}

static co_status events_read_open(co_page_events *e, int fd, const struct stat *info, bool whole,
                                  const char *path)
{
    char *text;
    co_status st;

    if (e->inode && !events_is_same(e, info, fd))
        CO_TRY(events_restart(e));
    e->device = info->st_dev;
    e->inode = info->st_ino;
    if (e->at == info->st_size)
        return CO_OK;
    text = co_calloc(EVENTS_MAX_LINE, 1);
    st = text ? events_take_file(e, text, fd, whole, path) : CO_E_NOMEM;
    co_free(text);
    return st;
}

co_status co_page_events_read(co_page_events *events, const char *dir, bool whole)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = EVENTS_MAX_FILE};
    char path[EVENTS_MAX_PATH];
    struct stat info;
    uint64_t size;
    int fd;
    co_status st;

    snprintf(path, sizeof(path), "%s/metrics.jsonl", dir);
    if (!co_fs_exists(path))
        return events->inode ? events_restart(events) : CO_OK;
    CO_TRY(co_open_read(&fd, &size, path, &rule));
    st = fstat(fd, &info) == 0 ? events_read_open(events, fd, &info, whole, path)
                               : co_fail(CO_E_IO, "%s: %s", path, strerror(errno));
    close(fd);
    return st;
}
