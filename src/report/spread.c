/*
 * spread.c - statistics over several seeds: mean, standard deviation, minimum, maximum.
 */
#include <math.h>
#include <string.h>

#include "report/report.h"

co_figure co_report_figures(const co_report *report)
{
    return (co_figure)(CO_FIGURES + (report->metrics ? report->metrics->n : 0));
}

const char *co_figure_name(char *out, size_t size, const co_report *report, co_figure figure)
{
    static const char *const names[CO_FIGURES] = {
        [CO_FIGURE_TRAIN_SECONDS] = "train_seconds",
        [CO_FIGURE_SAMPLES_PER_SECOND] = "samples_per_second",
        [CO_FIGURE_SPEEDUP] = "speedup",
        [CO_FIGURE_PREDICTED] = "predicted_speedup",
        [CO_FIGURE_TEST_ACCURACY] = "test_accuracy",
        [CO_FIGURE_TEST_LOSS] = "test_loss",
        [CO_FIGURE_BYTES_SENT] = "bytes_sent",
        [CO_FIGURE_COMPUTE_SECONDS] = "compute_seconds",
        [CO_FIGURE_SYNC_SECONDS] = "sync_seconds",
        [CO_FIGURE_STEPS] = "steps",
    };

    if (figure < CO_FIGURES)
        snprintf(out, size, "%s", names[figure]);
    else
        snprintf(out, size, "test_%s", report->metrics->metric[figure - CO_FIGURES]->name);
    return out;
}

double co_figure_of(const co_cell *cell, co_figure figure)
{
    switch (figure) {
    case CO_FIGURE_TRAIN_SECONDS:
        return cell->train_seconds;
    case CO_FIGURE_SAMPLES_PER_SECOND:
        return cell->samples_per_second;
    case CO_FIGURE_SPEEDUP:
        return cell->speedup;
    case CO_FIGURE_PREDICTED:
        return cell->predicted;
    case CO_FIGURE_TEST_ACCURACY:
        return cell->test_accuracy;
    case CO_FIGURE_TEST_LOSS:
        return cell->test_loss;
    case CO_FIGURE_BYTES_SENT:
        return cell->bytes_sent;
    case CO_FIGURE_COMPUTE_SECONDS:
        return cell->compute_seconds;
    case CO_FIGURE_SYNC_SECONDS:
        return cell->sync_seconds;
    case CO_FIGURE_STEPS:
        return cell->steps;
    default:
        return cell->metric[figure - CO_FIGURES];
    }
}

co_spread co_spread_of(const double *value, size_t n)
{
    co_spread s = {.mean = NAN, .sd = NAN, .min = NAN, .max = NAN};
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(value[i]))
            continue;
        sum += value[i];
        s.min = fmin(s.min, value[i]);
        s.max = fmax(s.max, value[i]);
        s.n++;
    }
    if (s.n)
        s.mean = sum / (double)s.n;
    for (size_t i = 0; i < n; i++)
        if (isfinite(value[i]))
            squares += (value[i] - s.mean) * (value[i] - s.mean);
    if (s.n > 1)
        s.sd = sqrt(squares / ((double)s.n - 1));
    return s;
}

co_spread co_report_spread(const co_report *report, size_t begin, size_t end, co_figure figure)
{
    double value[CO_REPORT_MAX_SEEDS];
    size_t n = 0;

    for (size_t i = begin; i < end && n < CO_REPORT_MAX_SEEDS; i++)
        value[n++] = co_figure_of(&report->cell[i], figure);
    return co_spread_of(value, n);
}

size_t co_report_group_end(const co_report *report, size_t begin)
{
    const co_cell *first = &report->cell[begin];
    size_t end = begin + 1;

    while (report->n_seed > 1 && end < report->n_cell && end < begin + report->n_seed &&
           report->cell[end].ranks == first->ranks &&
           strcmp(report->cell[end].strategy, first->strategy) == 0)
        end++;
    return end;
}

size_t co_report_strategy_end(const co_report *report, size_t begin)
{
    size_t end = begin + 1;

    while (end < report->n_cell &&
           strcmp(report->cell[end].strategy, report->cell[begin].strategy) == 0)
        end++;
    return end;
}
