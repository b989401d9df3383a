/*
 * jsonl.c - metrics.jsonl: one JSON object a line, for programs.
 *
 * Each event is one append, so a crash keeps every line written before it, and a reader that
 * follows the file never sees half a line from a healthy run. A full disk takes back the line that
 * did not fit.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mem.h"
#include "telemetry/json.h"

typedef struct jsonl {
    co_sink sink; /* first */
    char *path;   /* owned, for messages */
    int fd;
    uint64_t every;
    int ranks;
} jsonl;

static co_status jsonl_append(const jsonl *self, const char *text, size_t length)
{
    off_t start = lseek(self->fd, 0, SEEK_END);
    size_t done = 0;

    while (done < length) {
        ssize_t n = write(self->fd, text + done, length - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int cause = errno;

            if (start >= 0 && ftruncate(self->fd, start) != 0)
                cause = errno;
            return co_fail(CO_E_IO, "%s: cannot write: %s", self->path, strerror(cause));
        }
        done += (size_t)n;
    }
    return CO_OK;
}

/* Takes over `object`, which may be NULL; `bad` says that filling it in failed. */
static co_status jsonl_put(const jsonl *self, json_t *object, int bad)
{
    char *line = bad ? NULL : json_dumps(object, JSON_COMPACT | JSON_STYLE);
    co_status st = CO_E_NOMEM;

    json_decref(object);
    if (line) {
        size_t length = strlen(line);

        line[length] = '\n'; /* one write for both; the length goes along */
        st = jsonl_append(self, line, length + 1);
    } else {
        st = co_fail(CO_E_NOMEM, "out of memory while writing %s", self->path);
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
              json_put_count(object, "first_step", info->first_step);

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

    for (int r = 0; r < self->ranks; r++) {
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

static co_status jsonl_event(co_sink *sink, const co_event *event)
{
    const jsonl *self = (const jsonl *)sink;
    json_t *object;
    int bad;

    if (event->kind == CO_EVENT_STEP && event->step % self->every != 0)
        return CO_OK;
    object = json_object();
    bad = json_put_text(object, "event", jsonl_kind(event->kind)) |
          json_put_count(object, "epoch", event->epoch) |
          json_put_count(object, "step", event->step) |
          json_put_real(object, "wall_seconds", event->wall_seconds) |
          json_put_real(object, "train_seconds", event->train_seconds) |
          json_put_real(object, "compute_seconds", event->compute_seconds) |
          json_put_real(object, "sync_seconds", event->sync_seconds) |
          json_put_real(object, "samples_per_second", event->samples_per_second) |
          json_put_real(object, "lr", event->lr) | json_put_results(object, event) |
          json_put_real(object, "data_wait_seconds", event->data_wait_seconds) |
          json_put_count(object, "bytes_sent", event->bytes_sent);
    bad |= json_put_loss_scale(object, event);
    if (event->kind != CO_EVENT_STEP)
        bad |= json_put_count(object, "bad_samples", event->bad_samples);
    if (event->rank)
        bad |= jsonl_put_ranks(object, self, event);
    return jsonl_put(self, object, bad);
}

static void jsonl_close(co_sink *sink)
{
    jsonl *self = (jsonl *)sink;

    if (!self)
        return;
    if (self->fd >= 0)
        close(self->fd);
    co_free(self->path);
    co_free(self);
}

const co_sink_ops co_sink_jsonl = {
    .name = "jsonl",
    .summary = "metrics.jsonl in the run directory: one JSON object per event",
    .event = jsonl_event,
    .close = jsonl_close,
};

static co_status jsonl_open(jsonl *self, const char *run_dir)
{
    size_t size = strlen(run_dir) + sizeof("/metrics.jsonl");

    self->path = co_calloc(size, 1);
    if (!self->path)
        return CO_E_NOMEM;
    snprintf(self->path, size, "%s/metrics.jsonl", run_dir);
    self->fd = open(self->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (self->fd < 0)
        return co_fail(CO_E_IO, "%s: cannot open for writing: %s", self->path, strerror(errno));
    return CO_OK;
}

co_status co_sink_jsonl_open(co_sink **out, const co_run_info *info, const char *run_dir,
                             uint64_t every)
{
    jsonl *self = co_calloc(1, sizeof(*self));
    co_status st;

    if (!self)
        return CO_E_NOMEM;
    self->sink.ops = &co_sink_jsonl;
    self->fd = -1;
    self->every = every ? every : 1;
    self->ranks = info->ranks;
    st = jsonl_open(self, run_dir);
    if (st == CO_OK)
        st = jsonl_start(self, info);
    if (st != CO_OK) {
        jsonl_close(&self->sink);
        return st;
    }
    *out = &self->sink;
    return CO_OK;
}
