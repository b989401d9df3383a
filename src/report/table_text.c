/*
 * table_text.c - print a comparison for people: a row per cell or, with several seeds, rows of
 * means and standard deviations.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/plural.h"
#include "report/report.h"
#include "telemetry/format.h"

#define TABLE_MAX_NAME 56 /* bytes of a strategy's name before columns are out of line */

const char *co_cell_state_name(co_cell_state state)
{
    switch (state) {
    case CO_CELL_WAITING:
        return "not run";
    case CO_CELL_DONE:
        return "done";
    case CO_CELL_FAILED:
        return "failed";
    case CO_CELL_STOPPED:
        return "stopped";
    }
    return "";
}

typedef char table_text[24];

/* A number with `decimals` decimals, "-" if unknown. */
static const char *table_real(table_text out, double value, int decimals)
{
    if (isfinite(value))
        snprintf(out, sizeof(table_text), "%.*f", decimals, value);
    else
        snprintf(out, sizeof(table_text), "-");
    return out;
}

static const char *table_rate(table_text out, double value)
{
    if (value >= 0 && value < 1e18)
        return co_format_rate(out, sizeof(table_text), value);
    return table_real(out, NAN, 0);
}

static const char *table_bytes(table_text out, double value)
{
    if (value >= 0 && value < 1e18)
        return co_format_bytes(out, sizeof(table_text), (uint64_t)value);
    return table_real(out, NAN, 0);
}

/* The share of its steps that a rank has spent in the strategy. */
static const char *table_share(table_text out, const co_cell *cell)
{
    double share = cell->sync_seconds / (cell->sync_seconds + cell->compute_seconds);

    if (isfinite(share))
        snprintf(out, sizeof(table_text), "%.1f %%", 100 * share);
    else
        snprintf(out, sizeof(table_text), "-");
    return out;
}

static int table_name_width(const co_report *report)
{
    size_t width = strlen("strategy");

    for (size_t i = 0; i < report->n_cell; i++)
        if (strlen(report->cell[i].strategy) > width)
            width = strlen(report->cell[i].strategy);
    return width < TABLE_MAX_NAME ? (int)width : TABLE_MAX_NAME;
}

/* Wide enough for the column's name. */
static int table_metric_width(const co_report *report, int i)
{
    const size_t width = strlen(report->metrics->metric[i]->name);

    return width > 7 ? (int)width : 7;
}

static int table_metrics(const co_report *report)
{
    return report->metrics ? report->metrics->n : 0;
}

static void table_print_cell(FILE *out, const co_report *report, const co_cell *cell, int width)
{
    table_text train, rate, speedup, predicted, sync, accuracy, loss, sent;

    fprintf(out, "%-*s  %5d  %8s  %9s  %7s  %9s  %6s  %8s  %7s", width, cell->strategy, cell->ranks,
            table_real(train, cell->train_seconds, 2), table_rate(rate, cell->samples_per_second),
            table_real(speedup, cell->speedup, 2), table_real(predicted, cell->predicted, 2),
            table_share(sync, cell), table_real(accuracy, cell->test_accuracy, 4),
            table_real(loss, cell->test_loss, 4));
    for (int i = 0; i < table_metrics(report); i++)
        fprintf(out, "  %*s", table_metric_width(report, i), table_real(loss, cell->metric[i], 4));
    fprintf(out, "  %9s  %s\n", table_bytes(sent, cell->bytes_sent),
            co_cell_state_name(cell->state));
}

static void table_print_cells(FILE *out, const co_report *report, int width)
{
    fprintf(out, "%-*s  %5s  %8s  %9s  %7s  %9s  %6s  %8s  %7s", width, "strategy", "ranks",
            "time [s]", "samples/s", "speedup", "predicted", "sync", "accuracy", "loss");
    for (int i = 0; i < table_metrics(report); i++)
        fprintf(out, "  %*s", table_metric_width(report, i), report->metrics->metric[i]->name);
    fprintf(out, "  %9s  %s\n", "sent", "status");
    for (size_t i = 0; i < report->n_cell; i++)
        table_print_cell(out, report, &report->cell[i], width);
}

/* ---- several seeds ---- */

/* Mean and standard deviation. */
static void table_print_spread(FILE *out, const co_report *report, size_t begin, size_t end,
                               co_figure figure, int decimals)
{
    const co_spread spread = co_report_spread(report, begin, end, figure);
    table_text mean, sd;

    fprintf(out, "  %8s  %6s", table_real(mean, spread.mean, decimals),
            table_real(sd, spread.sd, decimals));
}

static void table_print_group(FILE *out, const co_report *report, size_t begin, size_t end,
                              int width)
{
    const co_spread rate = co_report_spread(report, begin, end, CO_FIGURE_SAMPLES_PER_SECOND);
    const co_spread sent = co_report_spread(report, begin, end, CO_FIGURE_BYTES_SENT);
    const co_cell *first = &report->cell[begin];
    table_text text;
    size_t done = 0;

    for (size_t i = begin; i < end; i++)
        done += report->cell[i].state == CO_CELL_DONE;
    fprintf(out, "%-*s  %5d", width, first->strategy, first->ranks);
    table_print_spread(out, report, begin, end, CO_FIGURE_TRAIN_SECONDS, 2);
    fprintf(out, "  %9s", table_rate(text, rate.mean));
    table_print_spread(out, report, begin, end, CO_FIGURE_SPEEDUP, 2);
    table_print_spread(out, report, begin, end, CO_FIGURE_TEST_ACCURACY, 4);
    table_print_spread(out, report, begin, end, CO_FIGURE_TEST_LOSS, 4);
    for (co_figure f = CO_FIGURES; f < co_report_figures(report); f++)
        table_print_spread(out, report, begin, end, f, 4);
    fprintf(out, "  %9s  %zu of %zu done\n", table_bytes(text, sent.mean), done, end - begin);
}

static void table_print_groups(FILE *out, const co_report *report, int width)
{
    fprintf(out, "Means over seeds %s; sd: standard deviation (n - 1)\n",
            report->seeds ? report->seeds : "");
    fprintf(out, "%-*s  %5s  %8s  %6s  %9s  %8s  %6s  %8s  %6s  %8s  %6s", width, "strategy",
            "ranks", "time [s]", "sd", "samples/s", "speedup", "sd", "accuracy", "sd", "loss",
            "sd");
    for (int i = 0; i < table_metrics(report); i++)
        fprintf(out, "  %8s  %6s", report->metrics->metric[i]->name, "sd");
    fprintf(out, "  %9s  %s\n", "sent", "status");
    for (size_t i = 0, end; i < report->n_cell; i = end) {
        end = co_report_group_end(report, i);
        table_print_group(out, report, i, end, width);
    }
}

/* ---- all of it ---- */

void co_report_print(FILE *out, const co_report *report)
{
    const int width = table_name_width(report);
    bool failed = false;

    if (report->n_seed)
        table_print_groups(out, report, width);
    else
        table_print_cells(out, report, width);
    for (size_t i = 0; i < report->n_cell; i++) {
        const co_cell *cell = &report->cell[i];

        if (!cell->why[0])
            continue;
        fprintf(out, "%s%s, %d rank%s%s%s: %s\n", failed ? "" : "\n", cell->strategy, cell->ranks,
                co_plural((uint64_t)cell->ranks), cell->seed ? ", seed " : "",
                cell->seed ? cell->seed : "", cell->why);
        failed = true;
    }
}
