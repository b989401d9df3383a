/*
 * jsonl.c - metrics.jsonl: one JSON object per line, for programs; each event is a record
 * (append.h).
 */
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/text.h"
#include "telemetry/append.h"
#include "telemetry/json.h"

typedef struct jsonl {
    co_sink sink; /* first */
    co_append file;
    co_run_info info;
} jsonl;

/* Takes ownership of `object`, which may be NULL; `bad`: adding members to it has failed. */
static co_status jsonl_put(const jsonl *self, json_t *object, int bad)
{
    char *line = bad ? NULL : json_dumps(object, JSON_COMPACT | JSON_STYLE);
    co_status st = CO_E_NOMEM;

    json_decref(object);
    if (line) {
        size_t length = strlen(line);

        line[length] = '\n'; /* instead of the NUL, for one write */
        st = co_append_record(&self->file, line, length + 1);
    } else {
        st = co_fail(CO_E_NOMEM, "out of memory while writing %s", self->file.path);
    }
    free(line);
    return st;
}

static co_status jsonl_start(const jsonl *self, const co_run_info *info)
{
    const char *const name = info->cause        ? "restart"
                             : info->resizes    ? "resize"
                             : info->first_step ? "resume"
                                                : "start";
    json_t *object = json_object();
    int bad = json_put_text(object, "event", name) | json_put_text(object, "model", info->model) |
              json_put_text(object, "dataset", info->dataset) |
              json_put_text(object, "strategy", info->strategy) |
              json_put_text(object, "transport", info->transport) |
              json_put_text(object, "backend", info->backend) |
              json_put_text(object, "precision", info->precision) |
              json_put_count(object, "ranks", (uint64_t)info->ranks) |
              json_put_count(object, "batch", info->batch) |
              json_put_count(object, "epochs", info->epochs) |
              json_put_count(object, "steps_per_epoch", info->steps_per_epoch) |
              json_put_count(object, "total_steps", info->total_steps) |
              json_put_count(object, "train_samples", info->train_samples) |
              json_put_count(object, "test_samples", info->test_samples) |
              json_put_count(object, "parameter_count", info->parameter_count) |
              json_put_count(object, "first_step", info->first_step) |
              json_put_count(object, "cores", (uint64_t)info->cores) |
              json_put_count(object, "threads", (uint64_t)info->threads);

    if (info->cause)
        bad |= json_put_text(object, "cause", info->cause) |
               json_object_set_new(object, "lost_rank", json_integer(info->lost_rank));
    return jsonl_put(self, object, bad);
}

static const char *jsonl_kind(co_event_kind kind)
{
    return kind == CO_EVENT_STEP ? "step" : kind == CO_EVENT_EPOCH ? "epoch" : "end";
}

/* {..., "ranks": [{"train_loss": ...}, ...]} */
static int jsonl_put_ranks(json_t *object, const jsonl *self, const co_event *event)
{
    json_t *list = json_array();
    int bad = 0;

    for (int r = 0; r < self->info.ranks; r++) {
        const co_rank_figures *rank = &event->rank[r];
        json_t *item = json_object();

        bad |= json_put_real(item, "train_loss", rank->train_loss) |
               json_put_real(item, "train_accuracy", rank->train_accuracy);
        if (event->has_test)
            bad |= json_put_real(item, "test_loss", rank->test_loss) |
                   json_put_real(item, "test_accuracy", rank->test_accuracy);
        bad |= json_array_append_new(list, item);
    }
    return bad | json_object_set_new(object, "ranks", list);
}

/* {..., "times": [{"wall": ...}, ...]}, of each rank */
static int jsonl_put_times(json_t *object, const jsonl *self, const co_rank_times *times)
{
    json_t *list = json_array();
    int bad = 0;

    for (int r = 0; r < self->info.ranks; r++) {
        const co_rank_times *t = &times[r];
        json_t *item = json_object();

        bad |= json_put_real(item, "wall", t->wall) | json_put_real(item, "start", t->start) |
               json_put_real(item, "data", t->data) | json_put_real(item, "compute", t->compute) |
               json_put_real(item, "exchange", t->exchange) | json_put_real(item, "wait", t->wait) |
               json_put_real(item, "evaluation", t->evaluation) |
               json_put_real(item, "checkpoint", t->checkpoint) |
               json_put_real(item, "update", t->update) | json_put_real(item, "core", t->core) |
               json_put_real(item, "delayed", t->delayed) | json_put_real(item, "read", t->read) |
               json_put_real(item, "read_core", t->read_core) |
               json_put_real(item, "read_delayed", t->read_delayed) |
               json_put_count(item, "samples", (uint64_t)t->samples) |
               json_array_append_new(list, item);
    }
    return bad | json_object_set_new(object, "times", list);
}

static int jsonl_put_recent(json_t *object, const co_recent_figures *recent)
{
    int bad = json_put_count(object, "steps", recent->steps);

    if (recent->rank0)
        bad |= json_put_text(object, "over", "rank 0");
    bad |= json_put_real(object, "read_samples_per_second", recent->read_samples_per_second) |
           json_put_real(object, "read_bytes_per_second", recent->read_bytes_per_second);
    return bad;
}

/* Figures of a step are those of the last steps; those of the epoch so far are for the console. */
static co_event jsonl_shown(const co_event *event)
{
    co_event shown = *event;

    if (event->kind != CO_EVENT_STEP)
        return shown;
    shown.samples_per_second = event->recent.samples_per_second;
    shown.train_loss = event->recent.loss;
    shown.train_accuracy = event->recent.accuracy;
    shown.train_accuracy_top5 = event->recent.accuracy_top5;
    return shown;
}

static co_status jsonl_event(co_sink *sink, const co_event *event)
{
    const jsonl *self = (const jsonl *)sink;
    const co_event shown = jsonl_shown(event);
    json_t *object;
    int bad;

    if (event->kind == CO_EVENT_STEP && event->recent.steps == 0)
        return CO_OK;
    object = json_object();
    bad = json_put_text(object, "event", jsonl_kind(event->kind)) |
          json_put_count(object, "epoch", event->epoch) |
          json_put_count(object, "step", event->step) |
          json_put_real(object, "wall_seconds", event->wall_seconds) |
          json_put_real(object, "train_seconds", event->train_seconds) |
          json_put_real(object, "compute_seconds", event->compute_seconds) |
          json_put_real(object, "sync_seconds", event->sync_seconds) |
          json_put_speed(object, &self->info, shown.samples_per_second) |
          json_put_real(object, "lr", event->lr) | json_put_results(object, &self->info, &shown) |
          json_put_real(object, "data_wait_seconds", event->data_wait_seconds) |
          json_put_count(object, "bytes_sent", event->bytes_sent);
    bad |= json_put_loss_scale(object, event);
    if (event->kind == CO_EVENT_STEP)
        bad |= json_put_real(object, "gradient_norm", event->gradient_norm) |
               jsonl_put_recent(object, &event->recent);
    else
        bad |= json_put_count(object, "bad_samples", event->bad_samples);
    if (event->rank)
        bad |= jsonl_put_ranks(object, self, event);
    if (event->times)
        bad |= jsonl_put_times(object, self, event->times);
    return jsonl_put(self, object, bad);
}

static co_status jsonl_failed(co_sink *sink, const co_event *event, const char *reason)
{
    json_t *object = json_object();
    const int bad = json_put_text(object, "event", "failed") |
                    json_put_count(object, "epoch", event->epoch) |
                    json_put_count(object, "step", event->step) |
                    json_put_real(object, "wall_seconds", event->wall_seconds) |
                    json_put_text(object, "reason", CO_SHOW(reason));

    return jsonl_put((const jsonl *)sink, object, bad);
}

static void jsonl_close(co_sink *sink)
{
    jsonl *self = (jsonl *)sink;

    if (!self)
        return;
    co_append_close(&self->file);
    co_free(self);
}

static co_status jsonl_create(co_sink **out, const co_run_info *info,
                              const co_sink_options *options)
{
    jsonl *self = co_calloc(1, sizeof(*self));
    co_status st = CO_OK;

    if (!self)
        return CO_E_NOMEM;
    self->sink.ops = &co_sink_jsonl;
    self->info = *info;
    if (options->resumed)
        st = co_sink_jsonl_cut(options->run_dir, options->step, options->epoch_step);
    if (st == CO_OK)
        st = co_append_open(&self->file, options->run_dir, "metrics.jsonl", false);
    if (st == CO_OK)
        st = jsonl_start(self, info);
    if (st != CO_OK) {
        jsonl_close(&self->sink);
        return st;
    }
    *out = &self->sink;
    return CO_OK;
}

const co_sink_ops co_sink_jsonl = {
    .name = "jsonl",
    .summary = "metrics.jsonl in the run directory: one JSON object per event",
    .open = jsonl_create,
    .event = jsonl_event,
    .failed = jsonl_failed,
    .close = jsonl_close,
};
