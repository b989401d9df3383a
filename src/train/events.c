/*
 * events.c - builds the events that a rank reports to the sinks: of steps, epochs and the run.
 *
 * Makes no step and no decision; does not know what a sink does with an event.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "model/model.h"
#include "step/distributed.h"
#include "train/trainer_internal.h"

co_spent trainer_spent(const trainer *t)
{
    co_spent spent = t->earlier;

    spent.compute_seconds += (double)(t->step_ns - t->step_sync_ns) * 1e-9;
    spent.sync_seconds += (double)co_distributed_sync_ns(t->distributed) * 1e-9;
    spent.data_wait_seconds += co_loader_wait_seconds(t->train.loader);
    spent.bytes_sent += co_comm_bytes_sent(t->comm);
    return spent;
}

void trainer_set_spent(co_event *event, const trainer *t)
{
    const co_spent spent = trainer_spent(t);

    event->compute_seconds = spent.compute_seconds;
    event->sync_seconds = spent.sync_seconds;
    event->data_wait_seconds = spent.data_wait_seconds;
    event->bytes_sent = spent.bytes_sent;
}

double trainer_wall_seconds(const trainer *t)
{
    return t->earlier_seconds + co_clock_seconds(t->job->start_ns, co_clock_ns());
}

double trainer_epoch_seconds(const trainer *t)
{
    return t->epoch_seconds + co_clock_seconds(t->epoch_start_ns, co_clock_ns());
}

co_event trainer_event(const trainer *t, co_event_kind kind)
{
    co_event event = {.kind = kind, .epoch = t->epoch, .step = t->step};

    event.epoch_step = t->epoch_step;
    event.wall_seconds = trainer_wall_seconds(t);
    event.train_seconds = t->train_seconds;
    event.lr = co_distributed_lr(t->distributed);
    if (t->overflow.kept) {
        event.loss_scale = co_distributed_loss_scale(t->distributed);
        event.skipped_steps = co_distributed_skipped_steps(t->distributed);
    }
    trainer_set_spent(&event, t);
    event.train_accuracy_top5 = event.test_accuracy_top5 = -1;
    return event;
}

double trainer_rate(uint64_t samples, double seconds)
{
    return seconds > 0 ? (double)samples / seconds : (double)NAN;
}

/* The divisor for means: NaN if there were no samples. */
static double events_count(const co_result *sums)
{
    return sums->count ? (double)sums->count : (double)NAN;
}

/* NaN if the model learns values. */
static double events_accuracy(const trainer *t, uint64_t correct, double n)
{
    return t->info.learns_values ? (double)NAN : (double)correct / n;
}

/* Where it is not defined: -1. */
static double events_top5(const trainer *t, double accuracy)
{
    return co_model_has_top5(t->job->model) ? accuracy : -1;
}

void trainer_set_train(co_event *event, const trainer *t, const co_result *seen)
{
    const double n = events_count(seen);

    event->train_loss = seen->loss_sum / n;
    event->train_accuracy = events_accuracy(t, seen->correct, n);
    event->train_accuracy_top5 = events_top5(t, (double)seen->correct5 / n);
}

void trainer_set_test(co_event *event, const trainer *t, const co_tested *tested)
{
    const co_result *test = &tested->all;
    const double n = events_count(test);

    event->has_test = true;
    event->test_loss = test->loss_sum / n;
    event->test_accuracy = events_accuracy(t, test->correct, n);
    event->test_accuracy_top5 = events_top5(t, (double)test->correct5 / n);
    memcpy(event->test_metric, tested->value, sizeof(event->test_metric));
}

void trainer_set_speed(co_event *event, const trainer *t, double seconds)
{
    event->samples_per_second = trainer_rate(t->epoch_samples, seconds);
    event->step_seconds = seconds / (double)t->epoch_step;
}

void trainer_set_test_speed(co_event *event, const trainer *t, uint64_t count, uint64_t start_ns)
{
    const double seconds = co_clock_seconds(start_ns, co_clock_ns());

    event->test_samples_per_second = trainer_rate(count, seconds);
    event->test_step_seconds = seconds / (double)co_sampler_steps(t->test.sampler);
}

/* A step that a device was given while it had another to do began when that was done; those of a
   launch, whose results are there at once, share its time. */
void trainer_set_last(trainer *t, const trainer_given *g)
{
    const co_result *seen = &g->seen;
    const double n = events_count(seen);
    const uint64_t begin_ns = g->read_ns > t->taken_ns ? g->read_ns : t->taken_ns;

    if (g->together)
        t->each_seconds = co_clock_seconds(begin_ns, co_clock_ns()) / g->together;
    t->last_step = (co_step_figures){.seconds = t->each_seconds,
                                     .wait_seconds = co_clock_seconds(g->read_ns, g->start_ns),
                                     .samples = g->batch.global,
                                     .loss = seen->loss_sum / n,
                                     .accuracy = events_accuracy(t, seen->correct, n),
                                     .accuracy_top5 = (double)seen->correct5 / n};
}

co_status trainer_emit(trainer *t, const co_event *event)
{
    for (int i = 0; i < t->n_sink; i++)
        CO_TRY(t->sink[i]->ops->event(t->sink[i], event));
    return CO_OK;
}

void trainer_say(trainer *t, const char *line)
{
    for (int i = 0; i < t->n_sink; i++)
        if (t->sink[i]->ops->text)
            t->sink[i]->ops->text(t->sink[i], line);
}

co_status trainer_emit_step(trainer *t)
{
    co_event event = trainer_event(t, CO_EVENT_STEP);
    const double seconds = trainer_epoch_seconds(t);

    event.train_seconds += seconds;
    event.samples_per_second = trainer_rate(t->epoch_samples, seconds);
    event.last = t->last_step;
    event.recent = t->recent.figures;
    event.gradient_norm = co_distributed_norm(t->distributed);
    trainer_set_train(&event, t, &t->seen);
    return trainer_emit(t, &event);
}

void trainer_say_precision(trainer *t)
{
    const co_dtype low = t->job->model->precision.plan.low;
    unsigned half = 0;
    char line[160];

    if (low == CO_F32)
        return;
    for (const co_backend *const *b = t->job->model->backends; *b; b++)
        half |= (*b)->half ? (*b)->half() : 0;
    if (half >> low & 1)
        return;
    snprintf(
        line, sizeof(line),
        "precision %s: no kernel here computes with %s: each layer computes in fp32 and rounds, "
        "which is right, and slower than fp32",
        t->job->model->precision.name, low == CO_BF16 ? "bf16" : "fp16");
    trainer_say(t, line);
}
