/*
 * console.c - progress of a run on standard output, for people.
 *
 * On a terminal: one bar for the whole run, redrawn in place at most ten times a second, below the
 * lines of finished epochs. Elsewhere (a file, a pipe, a dumb terminal) plain lines only: one per
 * epoch, and one about every ten seconds in between.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/plural.h"
#include "telemetry/format.h"
#include "telemetry/telemetry.h"

#define CONSOLE_DRAW_NS     100000000u   /* between two redraws of the bar */
#define CONSOLE_LINE_NS     10000000000u /* between two lines within an epoch */
#define CONSOLE_MAX_LINE    512
#define CONSOLE_MAX_BAR     40
#define CONSOLE_MIN_BAR     6
#define CONSOLE_FEW_CLASSES 10 /* with at most these, top-5 accuracy says little */
#define CONSOLE_ERASE       "\r\033[K"

typedef struct console {
    co_sink sink; /* first */
    co_run_info info;
    bool terminal;
    bool drawn; /* the current line has a bar */
    uint64_t start_ns, last_ns;
    double epoch_start_seconds; /* training time at the start of this epoch */
    double epoch_start_wait;    /* time waited for samples, likewise */
} console;

/* All output is written here, in one write. */
static co_status console_put(console *self, const char *text)
{
    bool failed = fputs(text, stdout) == EOF;
    const co_status st = co_sink_flush_output(&failed);

    self->drawn = self->drawn && !failed;
    return st;
}

static co_status console_line(console *self, const char *fmt, ...) CO_PRINTF(2, 3);

static co_status console_line(console *self, const char *fmt, ...)
{
    char text[CONSOLE_MAX_LINE + 16], *at = text;
    va_list args;

    if (self->drawn)
        at += snprintf(text, sizeof(text), "%s", CONSOLE_ERASE);
    self->drawn = false;
    va_start(args, fmt);
    vsnprintf(at, CONSOLE_MAX_LINE, fmt, args);
    va_end(args);
    memcpy(at + strlen(at), "\n", 2);
    return console_put(self, text);
}

static double console_left_seconds(const console *self, const co_event *event)
{
    const double spent = co_clock_seconds(self->start_ns, co_clock_ns());
    const uint64_t made = event->step - self->info.first_step;

    return spent / (double)made * (double)(self->info.total_steps - event->step);
}

/* "epoch  3/10", of the same width for every epoch. */
static void console_epoch(char *out, size_t size, const console *self, const co_event *event)
{
    char last[24];
    int width;

    width = snprintf(last, sizeof(last), "%" PRIu64, self->info.epochs);
    if (self->info.epochs)
        snprintf(out, size, "epoch %*" PRIu64 "/%s", width, event->epoch + 1, last);
    else
        snprintf(out, size, "epoch %" PRIu64, event->epoch + 1);
}

/* "24,310 samples/s", or tokens. */
static void console_rate(char *out, size_t size, const console *self, const co_event *event)
{
    const uint64_t tokens = self->info.positions;
    char rate[32];

    co_format_rate(rate, sizeof(rate), event->samples_per_second * (double)(tokens ? tokens : 1));
    snprintf(out, size, "%s %s/s", rate, tokens ? "tokens" : "samples");
}

/* "24,310 samples/s  loss 0.512  acc 0.823  34 s left"; `narrow`: without the loss. */
static void console_rates(char *out, size_t size, const console *self, const co_event *event,
                          bool narrow)
{
    char rate[48], left[32], number[32], accuracy[32], loss[48] = "";

    console_rate(rate, sizeof(rate), self, event);
    co_format_seconds(left, sizeof(left), console_left_seconds(self, event));
    if (!narrow)
        snprintf(loss, sizeof(loss), "loss %s  ",
                 co_format_real(number, sizeof(number), event->train_loss, 3));
    snprintf(out, size, "%s  %sacc %s  %s left", rate, loss,
             co_format_real(accuracy, sizeof(accuracy), event->train_accuracy, 3), left);
}

/* Columns left for the bar: " [] 100%  " takes ten, and the last column stays free. */
static int console_room(int width, const char *epoch, const char *rates)
{
    const int room = width - 11 - (int)strlen(epoch) - (int)strlen(rates);

    return room > CONSOLE_MAX_BAR ? CONSOLE_MAX_BAR : room;
}

static int console_width(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col < CONSOLE_MAX_LINE / 2 ? size.ws_col : CONSOLE_MAX_LINE / 2;
}

/* epoch 3/10 [#########...........]  47%  24,310 samples/s  loss 0.512  acc 0.823  34 s left */
static co_status console_draw(console *self, const co_event *event)
{
    char line[CONSOLE_MAX_LINE], epoch[64], rates[160], bar[CONSOLE_MAX_BAR + 4] = "";
    double part = (double)event->step / (double)self->info.total_steps;
    int room, width = console_width();

    console_epoch(epoch, sizeof(epoch), self, event);
    console_rates(rates, sizeof(rates), self, event, false);
    room = console_room(width, epoch, rates);
    if (room < CONSOLE_MIN_BAR) {
        console_rates(rates, sizeof(rates), self, event, true);
        room = console_room(width, epoch, rates);
    }
    if (room >= CONSOLE_MIN_BAR) {
        int full = (int)(part * room);

        bar[0] = '[';
        memset(bar + 1, '#', (size_t)full);
        memset(bar + 1 + full, '.', (size_t)(room - full));
        memcpy(bar + 1 + room, "] ", 3);
    }
    snprintf(line, sizeof(line), "%s %s%3d%%  %s", epoch, bar, (int)(part * 100), rates);
    if (width > 1)
        line[width - 1] = '\0'; /* a line that wraps could not be redrawn */
    memmove(line + sizeof(CONSOLE_ERASE) - 1, line, strlen(line) + 1);
    memcpy(line, CONSOLE_ERASE, sizeof(CONSOLE_ERASE) - 1);
    self->drawn = true;
    return console_put(self, line);
}

static co_status console_step(console *self, const co_event *event)
{
    uint64_t now = co_clock_ns();
    char epoch[64], rates[160];

    if (now - self->last_ns < (self->terminal ? CONSOLE_DRAW_NS : CONSOLE_LINE_NS))
        return CO_OK;
    self->last_ns = now;
    if (self->terminal)
        return console_draw(self, event);
    console_epoch(epoch, sizeof(epoch), self, event);
    console_rates(rates, sizeof(rates), self, event, false);
    return console_line(self, "%s  %3d%%  %s", epoch,
                        (int)(100.0 * (double)event->step / (double)self->info.total_steps), rates);
}

/* " | input-bound: 23% of the step", or "" if reading keeps up. */
static void console_input_bound(char *out, size_t size, double wait, double seconds)
{
    out[0] = 0;
    if (seconds > 0 && wait / seconds >= CO_INPUT_BOUND)
        snprintf(out, size, " | input-bound: %.0f%% of the step", 100 * wait / seconds);
}

/* " | test loss 0.401 acc 0.861", with the top-5 accuracy if there are many classes. */
static void console_test(char *out, size_t size, const console *self, const co_event *event)
{
    char top5[48] = "", loss[32], accuracy[32];

    out[0] = 0;
    if (!event->has_test)
        return;
    if (event->test_accuracy_top5 >= 0 && self->info.classes > CONSOLE_FEW_CLASSES)
        snprintf(top5, sizeof(top5), " top-5 %.3f", event->test_accuracy_top5);
    snprintf(out, size, " | test loss %s acc %s%s",
             co_format_real(loss, sizeof(loss), event->test_loss, 3),
             co_format_real(accuracy, sizeof(accuracy), event->test_accuracy, 3), top5);
    co_format_metrics(out, size, self->info.metrics, event->test_metric, " ", 3);
}

/* epoch  3/10  loss 0.512  acc 0.823 | test loss 0.401 acc 0.861 | 24,310 samples/s  4.9 s */
static co_status console_epoch_line(console *self, const co_event *event)
{
    const double spent = event->train_seconds - self->epoch_start_seconds;
    char epoch[64], rate[48], seconds[32], test[256], bound[48], loss[32], accuracy[32];

    console_epoch(epoch, sizeof(epoch), self, event);
    console_rate(rate, sizeof(rate), self, event);
    co_format_seconds(seconds, sizeof(seconds), spent);
    console_test(test, sizeof(test), self, event);
    console_input_bound(bound, sizeof(bound), event->data_wait_seconds - self->epoch_start_wait,
                        spent);
    self->epoch_start_seconds = event->train_seconds;
    self->epoch_start_wait = event->data_wait_seconds;
    self->last_ns = co_clock_ns();
    return console_line(self, "%s  loss %s  acc %s%s | %s  %s%s", epoch,
                        co_format_real(loss, sizeof(loss), event->train_loss, 3),
                        co_format_real(accuracy, sizeof(accuracy), event->train_accuracy, 3), test,
                        rate, seconds, bound);
}

static co_status console_bad_line(console *self, const co_event *event)
{
    char bad[32];

    if (event->bad_samples == 0)
        return CO_OK;
    return console_line(self, "  %s bad sample%s skipped, others with their labels took the places",
                        co_format_count(bad, sizeof(bad), event->bad_samples),
                        co_plural((uint64_t)event->bad_samples));
}

/* A line for each rank, as PyTorch's tutorials on distributed training print it. */
static co_status console_rank_lines(console *self, const co_event *event)
{
    for (int r = 0; event->rank && r < self->info.ranks; r++) {
        const co_rank_figures *rank = &event->rank[r];
        char loss[32], accuracy[32], test[96] = "";

        if (event->has_test)
            snprintf(test, sizeof(test), "  --|-- Val. Loss %s Val. Acc. %s",
                     co_format_real(loss, sizeof(loss), rank->test_loss, 3),
                     co_format_real(accuracy, sizeof(accuracy), rank->test_accuracy, 3));
        CO_TRY(console_line(self, "Rank %d, epoch %" PRIu64 ":  Train Loss %s  Train Acc. %s%s", r,
                            event->epoch, co_format_real(loss, sizeof(loss), rank->train_loss, 3),
                            co_format_real(accuracy, sizeof(accuracy), rank->train_accuracy, 3),
                            test));
    }
    return CO_OK;
}

/* "" unless an epoch was better than the final result. */
static const char *console_best(char *out, size_t size, const co_event *event, bool by_loss)
{
    const co_best_figures *best = &event->best;
    const bool better =
        by_loss ? best->test_loss < event->test_loss : best->test_accuracy > event->test_accuracy;
    char figure[32];

    *out = '\0';
    if (best->step > 0 && better)
        snprintf(out, size, " (best %s in epoch %" PRIu64 ")",
                 co_format_real(figure, sizeof(figure),
                                by_loss ? best->test_loss : best->test_accuracy, 4),
                 best->epoch + 1);
    return out;
}

static void console_result(char *out, size_t size, const console *self, const co_event *event)
{
    const bool by_loss = self->info.learns_values || self->info.positions;
    char figure[32], best[64];

    *out = '\0';
    if (!event->has_test)
        return;
    snprintf(out, size, "test %s %s%s", by_loss ? "loss" : "accuracy",
             co_format_real(figure, sizeof(figure),
                            by_loss ? event->test_loss : event->test_accuracy, 4),
             console_best(best, sizeof(best), event, by_loss));
    co_format_metrics(out, size, self->info.metrics, event->test_metric, ", ", 4);
}

static co_status console_end(console *self, const co_event *event)
{
    char steps[32], seconds[32], rate[48], test[256], bound[48];

    co_format_count(steps, sizeof(steps), event->step);
    co_format_seconds(seconds, sizeof(seconds), event->train_seconds);
    console_rate(rate, sizeof(rate), self, event);
    console_result(test, sizeof(test), self, event);
    console_input_bound(bound, sizeof(bound), event->data_wait_seconds, event->train_seconds);
    return console_line(self, "done: %s%s%s step%s in %s of training, %s%s", test,
                        *test ? ", " : "", steps, co_plural(event->step), seconds, rate, bound);
}

static co_status console_event(co_sink *sink, const co_event *event)
{
    console *self = (console *)sink;

    if (event->kind == CO_EVENT_STEP)
        return console_step(self, event);
    if (event->kind == CO_EVENT_EPOCH) {
        CO_TRY(console_rank_lines(self, event));
        CO_TRY(console_epoch_line(self, event));
        return console_bad_line(self, event);
    }
    return console_end(self, event);
}

static void console_text(co_sink *sink, const char *line)
{
    /* The next event fails as well, and reports it. */
    (void)console_line((console *)sink, "%s", line);
}

static void console_close(co_sink *sink)
{
    console *self = (console *)sink;

    if (!self)
        return;
    if (self->drawn)
        (void)console_put(self, CONSOLE_ERASE);
    co_free(self);
}

/* mpiexec gives rank 0 a terminal of its own even if its output goes to a file. */
static bool console_is_terminal(const co_run_info *info)
{
    const char *term = getenv("TERM");

    return !info->under_mpi && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Two lines that say what is about to run. */
static co_status console_greet(console *self)
{
    const co_run_info *info = &self->info;
    char parameters[32], train[32], test[32], steps[32];

    if (info->restarts || info->resizes)
        return console_line(self, "%d rank%s continue%s after step %s", info->ranks,
                            co_plural((uint64_t)info->ranks), info->ranks == 1 ? "s" : "",
                            co_format_count(steps, sizeof(steps), info->first_step));
    CO_TRY(console_line(
        self, "%s on %s: %s parameters, %d rank%s (%s over %s)", info->model, info->dataset,
        co_format_count(parameters, sizeof(parameters), info->parameter_count), info->ranks,
        co_plural((uint64_t)info->ranks), info->strategy, info->transport));
    co_format_count(test, sizeof(test), info->test_samples);
    return console_line(self, "%s training%s and %s test%s sample%s, %" PRIu64 " a step, %s step%s",
                        co_format_count(train, sizeof(train), info->train_samples),
                        info->train_at ? info->train_at : "", info->test_samples ? test : "no",
                        info->test_at ? info->test_at : "", co_plural(info->test_samples),
                        info->batch, co_format_count(steps, sizeof(steps), info->total_steps),
                        co_plural(info->total_steps));
}

static bool console_wanted(const co_sink_options *options)
{
    return !options->quiet && !options->lines;
}

static co_status console_create(co_sink **out, const co_run_info *info,
                                const co_sink_options *options)
{
    console *self = co_calloc(1, sizeof(*self));
    co_status st;

    (void)options;
    if (!self)
        return CO_E_NOMEM;
    self->sink.ops = &co_sink_console;
    self->info = *info;
    self->terminal = console_is_terminal(info);
    self->epoch_start_seconds = info->epoch_start_seconds;
    self->epoch_start_wait = info->epoch_start_wait;
    self->start_ns = self->last_ns = co_clock_ns();
    st = console_greet(self);
    if (st != CO_OK) {
        console_close(&self->sink);
        return st;
    }
    *out = &self->sink;
    return CO_OK;
}

const co_sink_ops co_sink_console = {
    .name = "console",
    .summary = "progress bar on a terminal, plain lines elsewhere, on standard output",
    .wanted = console_wanted,
    .open = console_create,
    .event = console_event,
    .text = console_text,
    .close = console_close,
};
