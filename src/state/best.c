/* best.c - see best.h. Does not know how checkpoints or sinks use it. */
#include "state/best.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/plural.h"

static const co_watched best_loss = {&co_metric_loss, -1};
static const co_watched best_accuracy = {&co_metric_accuracy, -1};

double co_watched_value(const co_watched *watched, const co_event *event)
{
    if (!event->has_test)
        return (double)NAN;
    if (watched->at >= 0)
        return event->test_metric[watched->at];
    if (watched->metric == &co_metric_loss)
        return event->test_loss;
    if (watched->metric == &co_metric_accuracy)
        return event->test_accuracy;
    return event->test_accuracy_top5 < 0 ? (double)NAN : event->test_accuracy_top5;
}

/* The requested metric; by default accuracy, or loss if there is no accuracy. */
static co_watched best_choose(const co_watched *asked, bool accurate)
{
    if (asked->metric && (asked->metric != &co_metric_accuracy || accurate))
        return *asked;
    return accurate ? best_accuracy : best_loss;
}

co_watched co_best_by(const co_stop_at *stop, const co_event *event)
{
    return best_choose(&stop->best, !isnan(event->test_accuracy));
}

/* Stored in checkpoints: must not change between versions. */
static uint64_t best_code(const co_watched *watched)
{
    if (watched->at >= 0)
        return 4 + (uint64_t)watched->at;
    return watched->metric == &co_metric_loss ? 1 : watched->metric == &co_metric_accuracy ? 2 : 3;
}

co_best co_best_none(void)
{
    return (co_best){
        .figures = {.test_accuracy = -1}, .value = (double)NAN, .awaited = (double)NAN};
}

/* Convert the record of a version that knew only accuracy and loss. */
static void best_take_over(co_best *best, const co_watched *awaited)
{
    const bool accurate = !isnan(best->figures.test_accuracy);

    best->value = accurate ? best->figures.test_accuracy : best->figures.test_loss;
    best->by = accurate ? 2 : 1;
    best->awaited = best->value;
    best->awaited_by = best->by;
    if (awaited->metric == &co_metric_loss && best->measured) {
        best->awaited = best->least_loss;
        best->awaited_by = 1;
    }
}

void co_best_resume(co_best *best, const co_stop_at *stop)
{
    const bool accurate = !isnan(best->figures.test_accuracy);
    const co_watched by = best_choose(&stop->best, accurate);
    const co_watched awaited = best_choose(&stop->awaited, accurate);

    if (best->by == 0 && best->figures.test_accuracy < 0) { /* of a run without an evaluation */
        *best = co_best_none();
        return;
    }
    if (best->by == 0)
        best_take_over(best, &awaited);
    if (best->by != best_code(&by))
        best->value = (double)NAN;
    if (best->awaited_by != best_code(&awaited))
        best->awaited = (double)NAN;
}

bool co_best_take(co_best *best, const co_stop_at *stop, const co_event *event)
{
    const bool accurate = !isnan(event->test_accuracy);
    const co_watched by = co_best_by(stop, event);
    const co_watched awaited = best_choose(&stop->awaited, accurate);
    const double value = co_watched_value(&by, event);
    const double waited = co_watched_value(&awaited, event);
    bool better;

    if (!event->has_test)
        return false;
    if (!best->measured || event->test_loss < best->least_loss)
        best->least_loss = event->test_loss;
    if (co_metric_better(awaited.metric, waited, best->awaited)) {
        best->awaited = waited;
        best->waited = 0;
    } else {
        best->waited++;
    }
    better = co_metric_better(by.metric, value, best->value);
    if (better) {
        best->value = value;
        best->figures = (co_best_figures){.step = event->step,
                                          .epoch = event->epoch,
                                          .test_accuracy = event->test_accuracy,
                                          .test_loss = event->test_loss};
        memcpy(best->figures.test_metric, event->test_metric, sizeof(event->test_metric));
    }
    best->by = best_code(&by);
    best->awaited_by = best_code(&awaited);
    best->measured = true;
    return better;
}

/* Index of the first target that is reached; -1: none. */
static int best_reached(const co_stop_at *stop, const co_event *last)
{
    for (int i = 0; i < stop->n; i++) {
        const co_watched *of = &stop->target[i].of;
        const double value = co_watched_value(of, last), target = stop->target[i].value;

        if (of->metric->lower ? value <= target : value >= target)
            return i;
    }
    return -1;
}

co_stop_reason co_best_find_stop(const char **metric, const co_best *best, const co_stop_at *stop,
                                 const co_event *last)
{
    const uint64_t patience = (uint64_t)stop->patience;
    const int reached = best_reached(stop, last);

    if (metric)
        *metric = reached >= 0 ? stop->target[reached].of.metric->name : NULL;
    if (reached >= 0)
        return CO_STOP_REACHED;
    return patience > 0 && best->waited >= patience ? CO_STOP_PATIENCE : CO_STOP_NONE;
}

const char *co_best_stop_message(char *out, size_t size, const co_best *best,
                                 const co_stop_at *stop, const co_event *last)
{
    const co_watched awaited = best_choose(&stop->awaited, !isnan(last->test_accuracy));
    const unsigned long long waited = best->waited;
    const int reached = best_reached(stop, last);

    if (reached < 0) {
        snprintf(out, size, "stopped: no better test %s in %llu evaluation%s (stop_at: patience)",
                 awaited.metric->name, waited, co_plural(waited));
    } else {
        const co_watched *of = &stop->target[reached].of;
        const bool accuracy = of->metric == &co_metric_accuracy;

        snprintf(out, size, "reached a test %s of %.4f (stop_at: %s%s%g) after %.1f s",
                 of->metric->name, co_watched_value(of, last), accuracy ? "" : of->metric->name,
                 accuracy ? "" : " ", stop->target[reached].value, last->wall_seconds);
    }
    return out;
}
