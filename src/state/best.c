/*
 * best.c - see best.h. Must not know what a checkpoint or a sink makes of it.
 */
#include "state/best.h"

#include <stdio.h>

#include "core/plural.h"
#include "train/spec.h"
#include "train/trainer_internal.h"

co_best co_best_none(void)
{
    return (co_best){.figures = {.test_accuracy = -1}};
}

bool co_best_take(co_best *best, const co_spec *spec, const co_event *event)
{
    const bool higher = event->has_test && event->test_accuracy > best->figures.test_accuracy;
    const bool lower = !best->measured || event->test_loss < best->least_loss;

    if (!event->has_test)
        return false;
    best->waited =
        (spec->stop_metric == CO_SPEC_METRIC_LOSS ? lower : higher) ? 0 : best->waited + 1;
    if (lower)
        best->least_loss = event->test_loss;
    if (higher)
        best->figures = (co_best_figures){.step = event->step,
                                          .epoch = event->epoch,
                                          .test_accuracy = event->test_accuracy,
                                          .test_loss = event->test_loss};
    best->measured = true;
    return higher;
}

co_stop_reason co_best_find_stop(const co_best *best, const co_spec *spec, const co_event *last)
{
    const uint64_t patience = (uint64_t)spec->stop_patience;

    if (spec->stop_accuracy > 0 && last->has_test && last->test_accuracy >= spec->stop_accuracy)
        return CO_STOP_REACHED;
    return patience > 0 && best->waited >= patience ? CO_STOP_PATIENCE : CO_STOP_NONE;
}

void co_best_check(trainer *t, const co_event *last)
{
    const co_spec *spec = &t->job->spec;
    const unsigned long long waited = t->best.waited;
    char line[160];

    t->stop_reason = co_best_find_stop(&t->best, spec, last);
    if (t->stop_reason == CO_STOP_PATIENCE && t->step >= t->info.total_steps)
        t->stop_reason = CO_STOP_NONE; /* there was nothing left to stop */
    if (t->stop_reason == CO_STOP_NONE)
        return;
    if (t->stop_reason == CO_STOP_REACHED) {
        t->reached_seconds = last->wall_seconds;
        snprintf(line, sizeof(line), "reached a test accuracy of %.4f (stop_at: %g) after %.1f s",
                 last->test_accuracy, spec->stop_accuracy, last->wall_seconds);
    } else
        snprintf(line, sizeof(line),
                 "stopped: no better test %s in %llu evaluation%s (stop_at: patience)",
                 spec->stop_metric == CO_SPEC_METRIC_LOSS ? "loss" : "accuracy", waited,
                 co_plural(waited));
    trainer_say(t, line);
}
