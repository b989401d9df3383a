/*
 * tensorboard.c - curves of steps and epochs as TensorBoard's event files.
 *
 * Each start of ranks writes a file of its own with the step after which it continues: TensorBoard
 * then ignores later steps of earlier files.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "core/mem.h"
#include "telemetry/tensorboard_internal.h"

/* Append Summary {value = 1: Value {tag = 1, simple_value = 2}}. A value that is not finite is left
   out: the curve has no point there. */
static void tensorboard_scalar(tensorboard *self, const char *tag, double value)
{
    if (!isfinite(value))
        return; /* a mean over nothing */
    board_clear(&self->value);
    board_text(&self->value, 1, tag);
    board_float(&self->value, 2, (float)value);
    board_nest(&self->summary, 1, &self->value);
}

co_status tensorboard_put_summary(tensorboard *self, uint64_t step)
{
    board_begin(&self->event, step);
    board_nest(&self->event, 5, &self->summary);
    return board_record(&self->file, &self->event, &self->record);
}

static co_status tensorboard_step(tensorboard *self, const co_event *event)
{
    const co_recent_figures *recent = &event->recent;
    board_clear(&self->summary);

    if (recent->steps == 0)
        return CO_OK;
    tensorboard_scalar(self, "train/loss", recent->loss);
    tensorboard_scalar(self, "train/accuracy", recent->accuracy);
    tensorboard_scalar(self, "train/lr", event->lr);
    if (event->loss_scale > 0)
        tensorboard_scalar(self, "train/loss_scale", event->loss_scale);
    tensorboard_scalar(self, "train/gradient_norm", event->gradient_norm);
    tensorboard_scalar(self, "speed/samples_per_second", recent->samples_per_second);
    return tensorboard_put_summary(self, event->step);
}

/* Metrics besides loss and accuracy; `before` and `after` surround the name. */
static void tensorboard_metrics(tensorboard *self, const char *before, const char *after,
                                const double *value)
{
    char tag[64];

    for (int i = 0; self->metrics && i < self->metrics->n; i++) {
        snprintf(tag, sizeof(tag), "%s%s%s", before, self->metrics->metric[i]->name, after);
        tensorboard_scalar(self, tag, value[i]);
    }
}

static co_status tensorboard_epoch(tensorboard *self, const co_event *event)
{
    board_clear(&self->summary);

    tensorboard_scalar(self, "epoch/train_loss", event->train_loss);
    tensorboard_scalar(self, "epoch/train_accuracy", event->train_accuracy);
    tensorboard_metrics(self, "epoch/train_", "", event->train_metric);
    if (event->has_test) {
        tensorboard_scalar(self, "epoch/test_loss", event->test_loss);
        tensorboard_scalar(self, "epoch/test_accuracy", event->test_accuracy);
        if (event->test_accuracy_top5 >= 0)
            tensorboard_scalar(self, "epoch/test_accuracy_top5", event->test_accuracy_top5);
        tensorboard_metrics(self, "epoch/test_", "", event->test_metric);
    }
    tensorboard_scalar(self, "epoch/samples_per_second", event->samples_per_second);
    return tensorboard_put_summary(self, event->step);
}

/* Accuracies in percent, as in scripts for ImageNet. */
static co_status tensorboard_imagenet(tensorboard *self, const co_event *event)
{
    board_clear(&self->summary);

    tensorboard_scalar(self, "Throughput/train", event->samples_per_second);
    tensorboard_scalar(self, "Time/train", event->step_seconds);
    tensorboard_scalar(self, "Loss/train", event->train_loss);
    tensorboard_scalar(self, "Top1/train", 100 * event->train_accuracy);
    if (event->train_accuracy_top5 >= 0)
        tensorboard_scalar(self, "Top5/train", 100 * event->train_accuracy_top5);
    tensorboard_metrics(self, "", "/train", event->train_metric);
    tensorboard_scalar(self, "Lr", event->lr);
    if (event->has_test) {
        tensorboard_scalar(self, "Throughput/val", event->test_samples_per_second);
        tensorboard_scalar(self, "Time/val", event->test_step_seconds);
        tensorboard_scalar(self, "Loss/val", event->test_loss);
        tensorboard_scalar(self, "Top1/val", 100 * event->test_accuracy);
        if (event->test_accuracy_top5 >= 0)
            tensorboard_scalar(self, "Top5/val", 100 * event->test_accuracy_top5);
        tensorboard_metrics(self, "", "/val", event->test_metric);
    }
    return tensorboard_put_summary(self, event->epoch + 1);
}

static co_status tensorboard_event(co_sink *sink, const co_event *event)
{
    tensorboard *self = (tensorboard *)sink;

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
    board_free(&self->record);
    board_free(&self->event);
    board_free(&self->summary);
    board_free(&self->value);
    board_free(&self->part);
    board_free(&self->inner);
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
static co_status tensorboard_start(tensorboard *self, const co_run_info *info)
{
    board_begin(&self->event, 0);
    board_text(&self->event, 3, "brain.Event:2");
    CO_TRY(board_record(&self->file, &self->event, &self->record));
    if (info->first_step == 0)
        return CO_OK;
    board_begin(&self->event, self->names == CO_BOARD_IMAGENET
                                  ? info->first_step / info->steps_per_epoch + 1
                                  : info->first_step + 1);
    board_clear(&self->part);
    board_int(&self->part, 1, 1);
    board_nest(&self->event, 7, &self->part);
    return board_record(&self->file, &self->event, &self->record);
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
    .show = tensorboard_show,
    .close = tensorboard_close,
};
