/*
 * lines.c - lines of values and averages, as training scripts for ImageNet print them.
 *
 *   Epoch: [1/90][ 50/195]  Time 0.121 (0.119)  Data 0.001 (0.002)  Samples/s 1057.9 (1075.6) ...
 *
 * Each figure is that of the last step, and in parentheses its mean over the epoch so far. Loss and
 * accuracies of a step are of rank 0's samples; those of an epoch are of all.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "telemetry/format.h"
#include "telemetry/telemetry.h"

#define LINES_MAX 512

typedef struct lines {
    co_sink sink; /* first */
    co_run_info info;
    uint64_t every;
    uint64_t steps, samples; /* of this epoch, as far as seen here */
    double seconds, wait_seconds;
} lines;

static co_status lines_put(const char *fmt, ...) CO_PRINTF(1, 2);

static co_status lines_put(const char *fmt, ...)
{
    va_list args;
    bool failed;

    va_start(args, fmt);
    failed = vprintf(fmt, args) < 0 || putchar('\n') == EOF;
    va_end(args);
    return co_sink_flush_output(&failed);
}

/* "\tName value (mean)"; "-" for a value that was not measured. */
static void lines_add(char *out, size_t size, const char *name, int digits, double value,
                      double mean)
{
    const size_t used = strlen(out);
    char text[32], average[32];

    snprintf(out + used, size - used, "\t%s %s (%s)", name,
             co_format_real(text, sizeof(text), value, digits),
             co_format_real(average, sizeof(average), mean, digits));
}

static int lines_width(uint64_t n)
{
    return snprintf(NULL, 0, "%" PRIu64, n);
}

static co_status lines_step(lines *self, const co_event *event)
{
    const co_step_figures *last = &event->last;
    const uint64_t steps = self->info.steps_per_epoch;
    char line[LINES_MAX] = "";
    double n;

    self->steps++;
    self->samples += last->samples;
    self->seconds += last->seconds;
    self->wait_seconds += last->wait_seconds;
    n = (double)self->steps;
    if (event->epoch_step != 1 && event->epoch_step != steps &&
        event->epoch_step % self->every != 0)
        return CO_OK;
    lines_add(line, sizeof(line), "Time", 3, last->seconds, self->seconds / n);
    lines_add(line, sizeof(line), "Data", 3, last->wait_seconds, self->wait_seconds / n);
    lines_add(line, sizeof(line), "Samples/s", 1, (double)last->samples / last->seconds,
              (double)self->samples / self->seconds);
    lines_add(line, sizeof(line), "Loss", 4, last->loss, event->train_loss);
    lines_add(line, sizeof(line), "Acc@1", 4, last->accuracy, event->train_accuracy);
    if (!(event->train_accuracy_top5 < 0))
        lines_add(line, sizeof(line), "Acc@5", 4, last->accuracy_top5, event->train_accuracy_top5);
    return lines_put("Epoch: [%" PRIu64 "/%" PRIu64 "][%*" PRIu64 "/%" PRIu64 "]%s",
                     event->epoch + 1, self->info.epochs, lines_width(steps), event->epoch_step,
                     steps, line);
}

static co_status lines_accuracy(const lines *self, const char *what, double loss, double top1,
                                double top5, const double *metric)
{
    char one[32], five[32], mean[32], more[48] = "", metrics[256] = "";

    if (!(top5 < 0))
        snprintf(more, sizeof(more), " Acc@5 %s", co_format_real(five, sizeof(five), top5, 4));
    co_format_metrics(metrics, sizeof(metrics), self->info.metrics, metric, " ", 4);
    return lines_put(" * %s: Acc@1 %s%s Loss %s%s", what, co_format_real(one, sizeof(one), top1, 4),
                     more, co_format_real(mean, sizeof(mean), loss, 4), metrics);
}

static co_status lines_epoch(lines *self, const co_event *event)
{
    const double share = self->seconds > 0 ? self->wait_seconds / self->seconds : 0;

    self->steps = self->samples = 0;
    self->seconds = self->wait_seconds = 0;
    CO_TRY(lines_accuracy(self, "training", event->train_loss, event->train_accuracy,
                          event->train_accuracy_top5, event->train_metric));
    if (event->has_test)
        CO_TRY(lines_accuracy(self, "test", event->test_loss, event->test_accuracy,
                              event->test_accuracy_top5, event->test_metric));
    if (share >= CO_INPUT_BOUND)
        CO_TRY(lines_put(" * input-bound: %.0f%% of the step", 100 * share));
    return CO_OK;
}

/* "### Training time: 1 h 7 min 51.31 s | 4071.31 s" */
static co_status lines_end(const co_event *event)
{
    const double seconds = event->train_seconds, hours = floor(seconds / 3600);
    const double minutes = floor((seconds - 3600 * hours) / 60);

    return lines_put("### Training time: %.0f h %.0f min %.2f s | %.2f s", hours, minutes,
                     seconds - 3600 * hours - 60 * minutes, seconds);
}

static co_status lines_event(co_sink *sink, const co_event *event)
{
    lines *self = (lines *)sink;

    if (event->kind == CO_EVENT_STEP)
        return lines_step(self, event);
    return event->kind == CO_EVENT_EPOCH ? lines_epoch(self, event) : lines_end(event);
}

static void lines_text(co_sink *sink, const char *line)
{
    (void)sink;
    /* The next event fails as well, and reports it. */
    (void)lines_put("%s", line);
}

static void lines_close(co_sink *sink)
{
    co_free(sink);
}

static bool lines_wanted(const co_sink_options *options)
{
    return !options->quiet && options->lines;
}

static co_status lines_create(co_sink **out, const co_run_info *info,
                              const co_sink_options *options)
{
    lines *self = co_calloc(1, sizeof(*self));

    if (!self)
        return CO_E_NOMEM;
    self->sink.ops = &co_sink_lines;
    self->info = *info;
    self->every = options->every ? options->every : 1;
    *out = &self->sink;
    return CO_OK;
}

const co_sink_ops co_sink_lines = {
    .name = "lines",
    .summary = "with log: lines, a line of values and averages every log_every steps, on standard "
               "output",
    .wanted = lines_wanted,
    .open = lines_create,
    .event = lines_event,
    .text = lines_text,
    .close = lines_close,
};
