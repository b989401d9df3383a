/*
 * best.c - see best.h. Must not know what a checkpoint or a sink does with it.
 */
#include "state/best.h"

#include <math.h>
#include <stdio.h>

#include "core/plural.h"

co_best co_best_none(void)
{
    return (co_best){.figures = {.test_accuracy = -1}};
}

bool co_best_take(co_best *best, const co_stop_at *stop, const co_event *event)
{
    const bool lower = !best->measured || event->test_loss < best->least_loss;
    const bool higher =
        isnan(event->test_accuracy) ? lower : event->test_accuracy > best->figures.test_accuracy;

    if (!event->has_test)
        return false;
    best->waited = (stop->metric == CO_STOP_METRIC_LOSS ? lower : higher) ? 0 : best->waited + 1;
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

co_stop_reason co_best_find_stop(const co_best *best, const co_stop_at *stop, const co_event *last)
{
    const uint64_t patience = (uint64_t)stop->patience;

    if (stop->accuracy > 0 && last->has_test && last->test_accuracy >= stop->accuracy)
        return CO_STOP_REACHED;
    if (stop->loss > 0 && last->has_test && last->test_loss <= stop->loss)
        return CO_STOP_LOSS;
    return patience > 0 && best->waited >= patience ? CO_STOP_PATIENCE : CO_STOP_NONE;
}

const char *co_best_stop_message(char *out, size_t size, const co_best *best,
                                 const co_stop_at *stop, const co_event *last)
{
    const unsigned long long waited = best->waited;
    const co_stop_reason reason = co_best_find_stop(best, stop, last);
    const bool loss = stop->metric == CO_STOP_METRIC_LOSS || isnan(last->test_accuracy);

    if (reason == CO_STOP_REACHED)
        snprintf(out, size, "reached a test accuracy of %.4f (stop_at: %g) after %.1f s",
                 last->test_accuracy, stop->accuracy, last->wall_seconds);
    else if (reason == CO_STOP_LOSS)
        snprintf(out, size, "reached a test loss of %.4f (stop_at: loss %g) after %.1f s",
                 last->test_loss, stop->loss, last->wall_seconds);
    else
        snprintf(out, size, "stopped: no better test %s in %llu evaluation%s (stop_at: patience)",
                 loss ? "loss" : "accuracy", waited, co_plural(waited));
    return out;
}
