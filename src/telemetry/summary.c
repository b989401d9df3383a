/*
 * summary.c - summary.json: the results of a run in one object, which scripts rely on.
 *
 * Written atomically at the end: a run directory with a summary is a finished run.
 */
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "telemetry/json.h"

static int summary_put_shards(json_t *object, uint64_t shards)
{
    return shards ? json_put_count(object, "shards", shards)
                  : json_put_text(object, "shards", "auto");
}

static int summary_put_counts(json_t *object, const co_summary *summary)
{
    json_t *list;
    int bad = 0;

    if (!summary->counts_name)
        return 0;
    list = json_array();
    for (size_t i = 0; i < summary->n_counts; i++)
        bad |= json_array_append_new(list, json_integer((json_int_t)summary->counts[i]));
    return bad | json_object_set_new(object, summary->counts_name, list);
}

static int summary_put_stragglers(json_t *object, const co_summary *summary)
{
    json_t *list = json_array();
    int bad = 0;

    for (int i = 0; i < summary->n_straggler; i++) {
        const co_straggler *late = &summary->straggler[i];
        json_t *item = json_object();

        bad |= json_put_count(item, "rank", (uint64_t)late->rank) |
               json_put_real(item, "late", late->late) | json_put_real(item, "cost", late->cost) |
               json_array_append_new(list, item);
    }
    return bad | json_object_set_new(object, "stragglers", list);
}

/* Absent if the accuracy of stop_at was not reached. */
static int summary_put_reached(json_t *object, double seconds)
{
    return seconds > 0 ? json_put_real(object, "reached_seconds", seconds) : 0;
}

/* Absent if all steps were made. */
static int summary_put_stop(json_t *object, const co_summary *summary)
{
    const char *const names[] = {
        [CO_STOP_REACHED] = summary->stop_metric,
        [CO_STOP_PATIENCE] = "patience",
        [CO_STOP_CALLBACK] = "callback",
    };

    if (summary->stop_reason == CO_STOP_NONE)
        return 0;
    return json_put_text(object, "stopped_by", names[summary->stop_reason]);
}

/* Absent if no epoch was evaluated, or an earlier version has kept only the accuracy. */
static int summary_put_best(json_t *object, const co_run_info *info, const co_best_figures *best)
{
    if (best->step == 0)
        return 0;
    return json_put_count(object, "best_epoch", best->epoch) |
           json_put_count(object, "best_step", best->step) |
           json_put_real(object, "best_test_loss", best->test_loss) |
           json_put_real(object, "best_test_accuracy", best->test_accuracy) |
           json_put_metrics(object, info, "best_test_", best->test_metric);
}

/* NULL if out of memory. */
static json_t *summary_build(const co_summary *summary)
{
    const co_run_info *info = summary->info;
    const co_event *last = summary->last;
    json_t *object = json_object();
    int bad =
        json_put_text(object, "model", info->model) |
        json_put_text(object, "dataset", info->dataset) |
        json_put_text(object, "strategy", info->strategy) |
        json_put_text(object, "transport", info->transport) |
        json_put_text(object, "precision", info->precision) | json_put_loss_scale(object, last) |
        json_put_count(object, "ranks", (uint64_t)info->ranks) |
        summary_put_shards(object, summary->shards) | json_put_count(object, "batch", info->batch) |
        json_put_count(object, "epochs", info->epochs) |
        json_put_count(object, "steps", last->step) |
        json_put_real(object, "wall_seconds", last->wall_seconds) |
        json_put_real(object, "train_seconds", last->train_seconds) |
        json_put_real(object, "compute_seconds", last->compute_seconds) |
        json_put_real(object, "sync_seconds", last->sync_seconds) |
        json_put_real(object, "start_seconds", summary->start_seconds) |
        json_put_real(object, "data_wait_seconds", last->data_wait_seconds) |
        json_put_real(object, "data_wait_share",
                      last->train_seconds > 0 ? last->data_wait_seconds / last->train_seconds
                                              : (double)NAN) |
        json_put_speed(object, info, last->samples_per_second) |
        json_put_results(object, info, last) | summary_put_best(object, info, &last->best) |
        summary_put_stop(object, summary) |
        json_put_count(object, "bad_samples", last->bad_samples) |
        json_put_count(object, "parameter_count", info->parameter_count) |
        json_put_count(object, "bytes_sent", last->bytes_sent) |
        json_put_count(object, "restarts", (uint64_t)info->restarts) |
        json_put_count(object, "resizes", (uint64_t)info->resizes) |
        summary_put_stragglers(object, summary) | summary_put_counts(object, summary) |
        summary_put_reached(object, summary->reached_seconds) |
        json_put_count(object, "checkpoints", summary->checkpoints) |
        json_put_count(object, "checkpoint_failures", summary->checkpoint_failures) |
        json_put_text(object, "weights_sha256", summary->weights_sha256);

    if (bad) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static co_status summary_write_object(const char *path, const json_t *object)
{
    co_atomic_file *file;

    CO_TRY(co_atomic_open(&file, path));
    /* A failed write sets the stream's error flag, which the commit checks. */
    (void)json_dumpf(object, co_atomic_stream(file), JSON_INDENT(2) | JSON_STYLE);
    fputc('\n', co_atomic_stream(file));
    return co_atomic_commit(file);
}

co_status co_summary_write(const char *run_dir, const co_summary *summary)
{
    size_t size = strlen(run_dir) + sizeof("/summary.json");
    char *path = co_calloc(size, 1);
    json_t *object;
    co_status st;

    if (!path)
        return CO_E_NOMEM;
    snprintf(path, size, "%s/summary.json", run_dir);
    object = summary_build(summary);
    st = object ? summary_write_object(path, object)
                : co_fail(CO_E_NOMEM, "out of memory while writing %s", path);
    json_decref(object);
    co_free(path);
    return st;
}
