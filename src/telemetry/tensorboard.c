/*
 * tensorboard.c - curves of steps and epochs as TensorBoard's event files.
 *
 * A file is a sequence of records: length (8 bytes), its checksum (4), an Event of
 * tensorflow/core/util/event.proto, its checksum (4). Checksums are CRC-32C, rotated and shifted so
 * that records may contain records; numbers are little-endian. Each start of ranks writes a file of
 * its own with the step after which it continues: TensorBoard then ignores later steps of earlier
 * files. The messages are small enough to be encoded by hand.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/mem.h"
#include "telemetry/append.h"
#include "telemetry/telemetry.h"

#define TENSORBOARD_MAX_EVENT 2048

typedef struct tensorboard {
    co_sink sink; /* first */
    co_append file;
    co_board_names names;
    const co_metric_set *metrics; /* NULL: none */
} tensorboard;

/* A message being encoded; TENSORBOARD_MAX_EVENT bytes are enough for the largest. */
typedef struct tensorboard_text {
    uint8_t byte[TENSORBOARD_MAX_EVENT];
    size_t size;
} tensorboard_text;

static uint32_t tensorboard_checksum(const uint8_t *byte, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= byte[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void tensorboard_put(tensorboard_text *t, const void *byte, size_t size)
{
    if (size > sizeof(t->byte) - t->size)
        return; /* one of our own names is too long; the tests would find it */
    memcpy(t->byte + t->size, byte, size);
    t->size += size;
}

static void tensorboard_little(tensorboard_text *t, uint64_t value, size_t size)
{
    uint8_t byte[8];

    for (size_t i = 0; i < size; i++)
        byte[i] = (uint8_t)(value >> 8 * i);
    tensorboard_put(t, byte, size);
}

static void tensorboard_varint(tensorboard_text *t, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        tensorboard_little(t, value | 0x80, 1);
    tensorboard_little(t, value, 1);
}

/* A field of bytes: a string or a nested message. */
static void tensorboard_field(tensorboard_text *t, unsigned number, const void *byte, size_t size)
{
    tensorboard_varint(t, number << 3 | 2);
    tensorboard_varint(t, size);
    tensorboard_put(t, byte, size);
}

/* Begin Event {wall_time = 1, step = 2}; the caller appends its contents. */
static void tensorboard_begin(tensorboard_text *t, uint64_t step)
{
    struct timespec now;
    double seconds;
    uint64_t bits;

    clock_gettime(CLOCK_REALTIME, &now);
    seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    memcpy(&bits, &seconds, sizeof(bits));
    t->size = 0;
    tensorboard_varint(t, 1 << 3 | 1);
    tensorboard_little(t, bits, 8);
    tensorboard_varint(t, 2 << 3 | 0);
    tensorboard_varint(t, step);
}

/* Append Summary {value = 1: Value {tag = 1, simple_value = 2}}, without the field around it. A
   value that is not finite is left out: the curve has no point there. */
static void tensorboard_scalar(tensorboard_text *summary, const char *tag, double value)
{
    tensorboard_text one = {.size = 0};
    const float rounded = (float)value;
    uint32_t bits;

    if (!isfinite(value))
        return; /* a mean over nothing */
    memcpy(&bits, &rounded, sizeof(bits));
    tensorboard_field(&one, 1, tag, strlen(tag));
    tensorboard_varint(&one, 2 << 3 | 5);
    tensorboard_little(&one, bits, 4);
    tensorboard_field(summary, 1, one.byte, one.size);
}

static co_status tensorboard_record(const tensorboard *self, const tensorboard_text *event)
{
    tensorboard_text record = {.size = 0};

    tensorboard_little(&record, event->size, 8);
    tensorboard_little(&record, tensorboard_checksum(record.byte, 8), 4);
    tensorboard_put(&record, event->byte, event->size);
    tensorboard_little(&record, tensorboard_checksum(event->byte, event->size), 4);
    return co_append_record(&self->file, record.byte, record.size);
}

static co_status tensorboard_put_summary(const tensorboard *self, const tensorboard_text *summary,
                                         uint64_t step)
{
    tensorboard_text event;

    tensorboard_begin(&event, step);
    tensorboard_field(&event, 5, summary->byte, summary->size);
    return tensorboard_record(self, &event);
}

static co_status tensorboard_step(const tensorboard *self, const co_event *event)
{
    const co_recent_figures *recent = &event->recent;
    tensorboard_text summary = {.size = 0};

    if (recent->steps == 0)
        return CO_OK;
    tensorboard_scalar(&summary, "train/loss", recent->loss);
    tensorboard_scalar(&summary, "train/accuracy", recent->accuracy);
    tensorboard_scalar(&summary, "train/lr", event->lr);
    if (event->loss_scale > 0)
        tensorboard_scalar(&summary, "train/loss_scale", event->loss_scale);
    tensorboard_scalar(&summary, "speed/samples_per_second", recent->samples_per_second);
    return tensorboard_put_summary(self, &summary, event->step);
}

/* Metrics besides loss and accuracy; `before` and `after` surround the name. */
static void tensorboard_metrics(tensorboard_text *summary, const tensorboard *self,
                                const char *before, const char *after, const double *value)
{
    char tag[64];

    for (int i = 0; self->metrics && i < self->metrics->n; i++) {
        snprintf(tag, sizeof(tag), "%s%s%s", before, self->metrics->metric[i]->name, after);
        tensorboard_scalar(summary, tag, value[i]);
    }
}

static co_status tensorboard_epoch(const tensorboard *self, const co_event *event)
{
    tensorboard_text summary = {.size = 0};

    tensorboard_scalar(&summary, "epoch/train_loss", event->train_loss);
    tensorboard_scalar(&summary, "epoch/train_accuracy", event->train_accuracy);
    tensorboard_metrics(&summary, self, "epoch/train_", "", event->train_metric);
    if (event->has_test) {
        tensorboard_scalar(&summary, "epoch/test_loss", event->test_loss);
        tensorboard_scalar(&summary, "epoch/test_accuracy", event->test_accuracy);
        if (event->test_accuracy_top5 >= 0)
            tensorboard_scalar(&summary, "epoch/test_accuracy_top5", event->test_accuracy_top5);
        tensorboard_metrics(&summary, self, "epoch/test_", "", event->test_metric);
    }
    tensorboard_scalar(&summary, "epoch/samples_per_second", event->samples_per_second);
    return tensorboard_put_summary(self, &summary, event->step);
}

/* Accuracies in percent, as in scripts for ImageNet. */
static co_status tensorboard_imagenet(const tensorboard *self, const co_event *event)
{
    tensorboard_text summary = {.size = 0};

    tensorboard_scalar(&summary, "Throughput/train", event->samples_per_second);
    tensorboard_scalar(&summary, "Time/train", event->step_seconds);
    tensorboard_scalar(&summary, "Loss/train", event->train_loss);
    tensorboard_scalar(&summary, "Top1/train", 100 * event->train_accuracy);
    if (event->train_accuracy_top5 >= 0)
        tensorboard_scalar(&summary, "Top5/train", 100 * event->train_accuracy_top5);
    tensorboard_metrics(&summary, self, "", "/train", event->train_metric);
    tensorboard_scalar(&summary, "Lr", event->lr);
    if (event->has_test) {
        tensorboard_scalar(&summary, "Throughput/val", event->test_samples_per_second);
        tensorboard_scalar(&summary, "Time/val", event->test_step_seconds);
        tensorboard_scalar(&summary, "Loss/val", event->test_loss);
        tensorboard_scalar(&summary, "Top1/val", 100 * event->test_accuracy);
        if (event->test_accuracy_top5 >= 0)
            tensorboard_scalar(&summary, "Top5/val", 100 * event->test_accuracy_top5);
        tensorboard_metrics(&summary, self, "", "/val", event->test_metric);
    }
    return tensorboard_put_summary(self, &summary, event->epoch + 1);
}

static co_status tensorboard_event(co_sink *sink, const co_event *event)
{
    const tensorboard *self = (const tensorboard *)sink;

    if (self->names == CO_BOARD_IMAGENET)
        return event->kind == CO_EVENT_EPOCH ? tensorboard_imagenet(self, event) : CO_OK;
    if (event->kind == CO_EVENT_STEP)
        return tensorboard_step(self, event);
    return event->kind == CO_EVENT_EPOCH ? tensorboard_epoch(self, event) : CO_OK;
}

static void tensorboard_close(co_sink *sink)
{
    tensorboard *self = (tensorboard *)sink;

    if (!self)
        return;
    co_append_close(&self->file);
    co_free(self);
}

/* TensorBoard reads the files of a folder in the order of their names. */
static co_status tensorboard_open(tensorboard *self, const char *run_dir)
{
    struct timespec now;
    char name[64];

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, sizeof(name), "events.out.tfevents.%010lld.%09ld", (long long)now.tv_sec,
             now.tv_nsec);
    return co_append_open(&self->file, run_dir, name, true);
}

/* The version of the file, and SessionLog {status = 1: START (1)} if a run is resumed. */
static co_status tensorboard_start(const tensorboard *self, const co_run_info *info)
{
    static const char version[] = "brain.Event:2";
    static const uint8_t session[] = {1 << 3 | 0, 1};
    tensorboard_text event;

    tensorboard_begin(&event, 0);
    tensorboard_field(&event, 3, version, sizeof(version) - 1);
    CO_TRY(tensorboard_record(self, &event));
    if (info->first_step == 0)
        return CO_OK;
    tensorboard_begin(&event, self->names == CO_BOARD_IMAGENET
                                  ? info->first_step / info->steps_per_epoch + 1
                                  : info->first_step + 1);
    tensorboard_field(&event, 7, session, sizeof(session));
    return tensorboard_record(self, &event);
}

static bool tensorboard_wanted(const co_sink_options *options)
{
    return options->tensorboard;
}

static co_status tensorboard_create(co_sink **out, const co_run_info *info,
                                    const co_sink_options *options)
{
    tensorboard *self = co_calloc(1, sizeof(*self));
    co_status st;

    if (!self)
        return CO_E_NOMEM;
    self->sink.ops = &co_sink_tensorboard;
    self->names = options->board_names;
    self->metrics = info->metrics;
    st = tensorboard_open(self, options->run_dir);
    if (st == CO_OK)
        st = tensorboard_start(self, info);
    if (st != CO_OK) {
        tensorboard_close(&self->sink);
        return st;
    }
    *out = &self->sink;
    return CO_OK;
}

const co_sink_ops co_sink_tensorboard = {
    .name = "tensorboard",
    .summary = "with the key tensorboard, events.out.tfevents.* in the run directory",
    .wanted = tensorboard_wanted,
    .open = tensorboard_create,
    .event = tensorboard_event,
    .close = tensorboard_close,
};
