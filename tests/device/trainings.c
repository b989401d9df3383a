/* trainings.c - ranks are threads of this process, so that each can have a device of its own. */
#include "device/trainings.h"

#include <dirent.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include "backends/backends.h"
#include "core/mem.h"
#include "data/data.h"
#include "device/mock_backend.h"
#include "device/mock_metrics.h"
#include "folder.h"
#include "shell.h"
#include "train/resume.h"
#include "train/rundir.h"

#define MAX_RANKS 4

static const co_backend *const host_backend[] = {&co_backend_ref, NULL};

typedef struct rank {
    co_job job;
    co_job_result result;
    co_device *device;
    mock_backend backend;
} rank;

/* What all ranks of a training have. */
typedef struct world {
    training *t;
    rank *rank;
} world;

int training_make_folder(void **state)
{
    return folder_make(state);
}

int training_remove_folder(void **state)
{
    return folder_remove(state);
}

const char *training_folder(void)
{
    return folder;
}

static void expect(const training *t, co_status st)
{
    if (st != CO_OK)
        fail_msg("%s: %s", t->name, co_error_message());
}

static void open_job(co_job *job, const training *t, int ranks)
{
    const char *const set[] = {t->limit, NULL};
    const co_train_options options = {.config_text = t->config, .set = t->limit ? set : NULL};
    co_spec *spec = &job->spec;

    expect(t, co_spec_load(spec, &options));
    expect(t, co_job_check_update(job));
    expect(t, co_dataset_open_value(&job->train, spec->data, spec->config, CO_SPLIT_TRAIN));
    expect(t, co_dataset_open_value(&job->test, spec->data, spec->config, CO_SPLIT_TEST));
    expect(t, co_spec_create_model(&job->model, spec, co_dataset_shape(job->train),
                                   co_dataset_classes(job->train)));
    expect(t, co_model_draw(job->model));
    expect(t, co_job_check_model(job));
    expect(t, co_job_check_ranks(job, ranks));
    expect(t, co_model_measure(job->model, &spec->metrics));
}

static void close_job(co_job *job)
{
    co_rundir_unlock(job->lock);
    co_model_destroy(job->model);
    co_dataset_destroy(job->test);
    co_dataset_destroy(job->train);
    co_spec_unload(&job->spec);
}

static void open_device(rank *r, const training *t)
{
    if (mock_open(&r->device, MOCK_KEYS) != CO_OK)
        assert_int_equal(mock_open(&r->device, MOCK_TWICE), CO_OK);
    if (!t->host_counts)
        mock_use_metrics(r->device);
    mock_backend_init(&r->backend, host_backend);
}

/* The run directory, as rank 0's launcher finds or makes it. */
static co_status enter(co_state **state, co_job *job)
{
    co_train_summary *train = &job->result->train;
    co_resume_kind kind;

    if (!job->resume)
        return co_rundir_create(&job->lock, train->run_dir, sizeof(train->run_dir), &job->spec,
                                job->train);
    CO_TRY(co_rundir_lock(&job->lock, train->run_dir));
    CO_TRY(co_resume_find(&kind, state, train->run_dir, job));
    assert_int_equal(kind, CO_RESUME_STATE);
    return co_resume_prepare(train->run_dir, job, *state);
}

static co_status run_rank(co_comm *comm, void *arg)
{
    const world *w = arg;
    rank *r = &w->rank[co_comm_rank(comm)];
    training *t = w->t;

    if (r->device)
        CO_TRY(co_model_move(r->job.model, r->device, r->backend.all));
    if (co_comm_rank(comm) == 0) {
        t->values = r->job.model->store->values;
        t->param = r->job.model->store->param;
        if (r->device && t->log)
            mock_log(r->device, t->log, t->max_log);
    }
    return co_trainer_run(comm, &r->job);
}

static void open_ranks(rank *ranks, const training *t, int n)
{
    for (int i = 0; i < n; i++) {
        rank *r = &ranks[i];

        r->job = (co_job){.quiet = true, .lock = -1, .resume = t->resume, .result = &r->result};
        r->job.on_step = t->on_step;
        r->job.on_step_arg = t->on_step_arg;
        open_job(&r->job, t, n);
        snprintf(r->result.train.run_dir, sizeof(r->result.train.run_dir), "%s",
                 folder_path(t->name));
        if (t->mock)
            open_device(r, t);
    }
}

void training_run(training *t)
{
    const int n = t->ranks ? t->ranks : 1;
    rank *ranks = co_calloc(MAX_RANKS, sizeof(*ranks));
    const co_launch_options options = {.ranks = n, .threads = true};
    world w = {t, ranks};
    co_state *state = NULL;
    co_status st;

    assert_non_null(ranks);
    open_ranks(ranks, t, n);
    expect(t, enter(&state, &ranks[0].job));
    for (int i = 0; i < n; i++)
        ranks[i].job.state = state;
    st = co_launch(&options, run_rank, &w);
    snprintf(t->message, sizeof(t->message), "%s", st == CO_OK ? "" : co_error_message());
    if ((st != CO_OK) != t->fails)
        fail_msg("%s: %s", t->name, st == CO_OK ? "it has not failed" : t->message);
    t->n_log = t->log ? mock_logged(ranks[0].device) : 0;
    t->result = ranks[0].result;
    co_state_destroy(state);
    for (int i = 0; i < n; i++) {
        close_job(&ranks[i].job);
        mock_close(ranks[i].device);
    }
    co_free(ranks);
}

/* ---- what is left ---- */

/* But for times, and bytes that a resumed run has counted anew. */
static void drop_times(json_t *event)
{
    static const char *const parts[] = {"seconds", "per_second", "bytes", "event_time", "times"};
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(event, next, key, value)
    {
        bool drop = false;

        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
            drop = drop || strstr(key, parts[i]);
        if (drop)
            json_object_del(event, key);
        else if (json_is_object(value))
            drop_times(value);
    }
}

/* The next event of training; `resume` and `start` are others' matter. NULL: no more. */
static json_t *next_event(FILE *file)
{
    static const char *const wanted[] = {"step", "epoch", "end"};
    char line[8192];

    while (fgets(line, sizeof(line), file)) {
        json_t *event = json_loads(line, 0, NULL);
        const char *kind = json_string_value(json_object_get(event, "event"));

        assert_non_null(kind);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
            if (strcmp(kind, wanted[i]) == 0) {
                drop_times(event);
                return event;
            }
        json_decref(event);
    }
    return NULL;
}

static FILE *open_events(const training *t)
{
    char path[1100];
    FILE *file;

    snprintf(path, sizeof(path), "%s/metrics.jsonl", t->result.train.run_dir);
    file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

static void check_events(const training *got, const training *want)
{
    FILE *a = open_events(got), *b = open_events(want);
    int n = 0;

    for (;; n++) {
        json_t *x = next_event(a), *y = next_event(b);

        if ((x != NULL) != (y != NULL) || (x && !json_equal(x, y)))
            fail_msg("%s: event %d is %s, not %s", got->name, n, x ? json_dumps(x, 0) : "missing",
                     y ? json_dumps(y, 0) : "missing");
        json_decref(x);
        json_decref(y);
        if (!x)
            break;
    }
    assert_true(n > 3);
    fclose(a);
    fclose(b);
}

static void checkpoint_dir(char *out, size_t size, const training *t)
{
    snprintf(out, size, "%s/checkpoints", t->result.train.run_dir);
}

static bool is_checkpoint(const struct dirent *entry)
{
    return strncmp(entry->d_name, "step-", 5) == 0;
}

int training_count_checkpoints(const training *t)
{
    const struct dirent *entry;
    char path[1100];
    DIR *dir;
    int n = 0;

    checkpoint_dir(path, sizeof(path), t);
    dir = opendir(path);
    if (!dir)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        n += is_checkpoint(entry);
    closedir(dir);
    return n;
}

static void check_checkpoints(const training *got, const training *want)
{
    char path[1100], other[1100];
    const struct dirent *entry;
    DIR *dir;

    assert_int_equal(training_count_checkpoints(got), training_count_checkpoints(want));
    checkpoint_dir(path, sizeof(path), want);
    checkpoint_dir(other, sizeof(other), got);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (!is_checkpoint(entry))
            continue;
        if (shell_run(
                "for f in %s/%s/*.safetensors; do cmp $f %s/%s/$(basename $f) || exit 1; done",
                path, entry->d_name, other, entry->d_name) != 0)
            fail_msg("%s: checkpoint %s is not that of %s", got->name, entry->d_name, want->name);
    }
    closedir(dir);
}

void training_check_same(const training *got, const training *want)
{
    const co_train_summary *a = &got->result.train, *b = &want->result.train;

    assert_string_equal(a->weights_sha256, b->weights_sha256);
    assert_int_equal(a->steps, b->steps);
    check_events(got, want);
    check_checkpoints(got, want);
}

void training_check(const char *config, const char *half, int ranks)
{
    training host = {.config = config, .name = "host", .ranks = ranks};
    training device = {.config = config, .name = "device", .ranks = ranks, .mock = true};
    training first = {.config = config, .name = "cut", .ranks = ranks, .mock = true, .limit = half};
    training rest = {.config = config, .name = "cut", .ranks = ranks, .mock = true, .resume = true};

    training_run(&host);
    training_run(&device);
    training_check_same(&device, &host);
    training_run(&first);
    assert_true(first.result.train.steps < host.result.train.steps);
    training_run(&rest);
    assert_string_equal(rest.result.train.weights_sha256, host.result.train.weights_sha256);
    assert_int_equal(rest.result.train.steps, host.result.train.steps);
    assert_true(rest.result.train.train_loss == host.result.train.train_loss);
    assert_true(rest.result.train.test_loss == host.result.train.test_loss);
    assert_true(rest.result.train.test_accuracy == host.result.train.test_accuracy);
}
