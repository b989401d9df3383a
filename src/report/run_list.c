/* run_list.c - finds run directories and reads what a table of runs shows. */
#include "report/run_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "core/config.h"
#include "core/fs.h"
#include "core/mem.h"
#include "report/run_config.h"

#define RUN_LIST_MAX_PATH    4096
#define RUN_LIST_MAX_SUMMARY ((size_t)1 << 20)
#define RUN_LIST_PART        ((off_t)64 << 10)     /* of metrics.jsonl: its first and last events */
#define RUN_LIST_MOST        ((off_t)4 << 20)      /* in which its last epoch is looked for */
#define RUN_LIST_EPOCH       "\"event\":\"epoch\"" /* as src/telemetry/jsonl.c writes it */
#define RUN_LIST_MAX_RUNS    100000

static bool run_list_has(const char *dir, const char *file)
{
    char path[RUN_LIST_MAX_PATH];

    return co_fs_join(path, sizeof(path), dir, file) == CO_OK && co_fs_exists(path);
}

/* As `cohort inspect` knows one. */
static bool run_list_is_run(const char *dir)
{
    return run_list_has(dir, "config.yaml") &&
           (run_list_has(dir, ".lock") || run_list_has(dir, "metrics.jsonl") ||
            run_list_has(dir, "summary.json") || run_list_has(dir, "checkpoints"));
}

/* Whether a job holds the lock; it is not waited for, and not kept. */
static bool run_list_is_locked(const char *dir)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true};
    char path[RUN_LIST_MAX_PATH];
    uint64_t size;
    bool locked;
    int fd;

    if (!run_list_has(dir, ".lock") || co_fs_join(path, sizeof(path), dir, ".lock") != CO_OK ||
        co_open_read(&fd, &size, path, &rule) != CO_OK)
        return false;
    locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

static void run_list_text(char *out, size_t size, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (text)
        snprintf(out, size, "%s", text);
}

static void run_list_number(double *out, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_number(value))
        *out = json_number_value(value);
}

static void run_list_take_names(co_run_entry *run, const json_t *object)
{
    run_list_text(run->model, sizeof(run->model), object, "model");
    run_list_text(run->dataset, sizeof(run->dataset), object, "dataset");
    run_list_text(run->strategy, sizeof(run->strategy), object, "strategy");
}

/* What summary.json and events have under the same names. */
static void run_list_take(co_run_entry *run, const json_t *object)
{
    run_list_take_names(run, object);
    run_list_number(&run->ranks, object, "ranks");
    run_list_number(&run->wall_seconds, object, "wall_seconds");
    run_list_number(&run->train_loss, object, "train_loss");
    run_list_number(&run->test_accuracy, object, "test_accuracy");
    run_list_number(&run->test_loss, object, "test_loss");
    run_list_number(&run->samples_per_second, object, "samples_per_second");
}

static void run_list_read_summary(co_run_entry *run)
{
    static const co_open_rule rule = {
        .status = CO_E_DATA, .own = true, .max = RUN_LIST_MAX_SUMMARY};
    char path[RUN_LIST_MAX_PATH];
    uint8_t *text = NULL;
    size_t size;
    json_t *object;

    if (co_fs_join(path, sizeof(path), run->dir, "summary.json") != CO_OK ||
        co_fs_read_as(&text, &size, path, &rule) != CO_OK)
        return;
    object = json_loadb((const char *)text, size, 0, NULL);
    co_free(text);
    run_list_take(run, object);
    run_list_number(&run->steps, object, "steps");
    run_list_number(&run->epoch, object, "epochs");
    run_list_number(&run->test_accuracy, object, "best_test_accuracy");
    run_list_number(&run->test_loss, object, "best_test_loss");
    json_decref(object);
}

/* The lines of a part of metrics.jsonl, whose first one may be cut. */
static void run_list_take_events(co_run_entry *run, char *text)
{
    for (char *line = text, *next; *line; line = next) {
        const size_t n = strcspn(line, "\n");
        json_t *event = json_loadb(line, n, 0, NULL);

        next = line + n + (line[n] == '\n');
        if (!json_is_object(event)) {
            json_decref(event);
            continue;
        }
        run_list_take(run, event);
        run_list_number(&run->steps, event, "step");
        run_list_number(&run->epoch, event, "epoch");
        json_decref(event);
    }
}

/* `n` bytes at `at` as text. */
static co_status run_list_read_part(char **out, int fd, off_t at, off_t n)
{
    char *text = co_calloc((size_t)n + 1, 1);
    ssize_t got;

    if (!text)
        return CO_E_NOMEM;
    got = pread(fd, text, (size_t)n, at);
    text[got > 0 ? got : 0] = '\0';
    *out = text;
    return CO_OK;
}

/* The end of the file: back to the last epoch, as no step has figures of the test split. */
static co_status run_list_read_end(char **out, int fd, off_t size)
{
    for (off_t n = RUN_LIST_PART;; n *= 4) {
        n = n < size ? n : size;
        CO_TRY(run_list_read_part(out, fd, size - n, n));
        if (n == size || n >= RUN_LIST_MOST || strstr(*out, RUN_LIST_EPOCH))
            return CO_OK;
        co_free(*out);
    }
}

/* What the run has said at its start. Its ranks may be others now. */
static co_status run_list_take_start(co_run_entry *run, int fd)
{
    json_t *event;
    char *text;

    CO_TRY(run_list_read_part(&text, fd, 0, RUN_LIST_PART));
    event = json_loadb(text, strcspn(text, "\n"), 0, NULL);
    run_list_take_names(run, event);
    json_decref(event);
    co_free(text);
    return CO_OK;
}

static co_status run_list_take_file(co_run_entry *run, int fd, off_t size)
{
    char *text;

    if (size > RUN_LIST_PART)
        CO_TRY(run_list_take_start(run, fd));
    CO_TRY(run_list_read_end(&text, fd, size));
    run_list_take_events(run, text);
    co_free(text);
    return CO_OK;
}

/* Of a run without a summary. */
static co_status run_list_read_events(co_run_entry *run)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true};
    char path[RUN_LIST_MAX_PATH];
    uint64_t size = 0;
    co_status st;
    int fd;

    if (co_fs_join(path, sizeof(path), run->dir, "metrics.jsonl") != CO_OK ||
        co_open_read(&fd, &size, path, &rule) != CO_OK)
        return CO_OK;
    st = run_list_take_file(run, fd, (off_t)size);
    close(fd);
    return st;
}

static void run_list_read_time(co_run_entry *run, const char *file)
{
    char path[RUN_LIST_MAX_PATH];
    struct stat info;

    if (co_fs_join(path, sizeof(path), run->dir, file) == CO_OK && stat(path, &info) == 0)
        run->ended = (double)info.st_mtime;
}

co_run_state co_run_state_of(const char *dir)
{
    if (run_list_has(dir, "summary.json"))
        return CO_RUN_FINISHED;
    return run_list_is_locked(dir) ? CO_RUN_RUNNING : CO_RUN_STOPPED;
}

static co_status run_list_read(co_run_entry *run, bool names_only)
{
    run->ranks = run->epoch = run->steps = run->test_accuracy = run->test_loss = NAN;
    run->train_loss = run->samples_per_second = run->wall_seconds = run->ended = NAN;
    run_list_read_time(run, "config.yaml");
    run_list_read_time(run, "metrics.jsonl");
    if (names_only)
        return CO_OK;
    CO_TRY(co_run_config_read(run));
    run->state = co_run_state_of(run->dir);
    if (run->state != CO_RUN_FINISHED)
        return run_list_read_events(run);
    run_list_read_summary(run);
    return CO_OK;
}

static co_status run_list_push(co_run_list *list, const char *dir)
{
    co_run_entry *run;

    if (list->n == RUN_LIST_MAX_RUNS)
        return co_fail(CO_E_USAGE, "%s: more than %d runs", dir, RUN_LIST_MAX_RUNS);
    if (list->n == list->room) {
        const size_t room = list->room ? 2 * list->room : 64;
        co_run_entry *grown = co_realloc(list->run, room, sizeof(*grown));

        if (!grown)
            return CO_E_NOMEM;
        list->run = grown;
        list->room = room;
    }
    run = &list->run[list->n];
    *run = (co_run_entry){.dir = co_strdup(dir)};
    if (!run->dir)
        return CO_E_NOMEM;
    list->n++;
    return run_list_read(run, list->names_only);
}

static int run_list_is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.' &&
           (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK);
}

static int run_list_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Runs below `dir`, and in folders of it as often as `levels` says. */
static co_status run_list_add_below(co_run_list *list, const char *dir, int levels)
{
    struct dirent **entry = NULL;
    char path[RUN_LIST_MAX_PATH];
    const int n = scandir(dir, &entry, run_list_is_visible, run_list_order);
    co_status st = CO_OK;

    if (n < 0)
        return errno == ENOTDIR || levels == 0 ? CO_OK
                                               : co_fail(CO_E_DATA, "%s: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        if (st == CO_OK && co_fs_join(path, sizeof(path), dir, entry[i]->d_name) == CO_OK) {
            if (run_list_is_run(path))
                st = run_list_push(list, path);
            else if (levels > 0)
                st = run_list_add_below(list, path, levels - 1);
        }
        free(entry[i]);
    }
    free(entry);
    return st;
}

co_status co_run_list_add(co_run_list *list, const char *dir)
{
    struct stat info;

    if (stat(dir, &info) != 0)
        return co_fail(CO_E_DATA, "%s: %s", dir, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return co_fail(CO_E_DATA, "%s: is a file, not a folder of runs", dir);
    return run_list_is_run(dir) ? run_list_push(list, dir) : run_list_add_below(list, dir, 1);
}

co_status co_run_list_find(co_run_list *list, const char *dir)
{
    list->names_only = true;
    return co_run_list_add(list, dir);
}

void co_run_list_free(co_run_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        co_free(list->run[i].dir);
        co_free(list->run[i].text);
        co_free(list->run[i].line);
    }
    for (size_t k = 0; k < list->n_key; k++)
        co_free(list->key[k]);
    for (size_t k = 0; list->value && k < list->n_key * list->n; k++)
        co_free(list->value[k]);
    co_free(list->run);
    co_free(list->key);
    co_free(list->value);
    *list = (co_run_list){0};
}

const char *co_run_state_name(co_run_state state)
{
    static const char *const names[] = {"finished", "running", "stopped"};

    return names[state];
}
