/*
 * plots_figures.c - the plots of a comparison: figures by the number of ranks, and by the seconds
 * of training. Each strategy has a colour; legends are sorted by the last values of the lines.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/plural.h"
#include "report/plots.h"

#define PLOTS_MAX_NAME  40 /* bytes of a strategy's name in the legend */
#define PLOTS_MAX_NOTE  160
#define PLOTS_ASIDE     0.014
#define PLOTS_MAX_RANKS 64 /* numbers of ranks with a tick on the axis */

/* Colours by Okabe and Ito, which are safe for colour blindness, and a purple and black. */
static const char *const plots_colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                            "#e69f00", "#56b4e9", "#7a5195", "#000000"};

#define PLOTS_COLOURS (sizeof(plots_colours) / sizeof(plots_colours[0]))

static const char plots_points_spread[] = "; points: mean over the seeds, bars: min to max";
static const char plots_bands_spread[] = "lines: mean over the seeds, bands: min to max";
static const char plots_side_by_side[] =
    "points of the same number of ranks are drawn side by side";
static const char plots_averaged[] = "a vertical end: the average of the weights, after training";
static const char plots_dashed[] = "dashed: predicted, N / (1 + T_sync / T_comp)";

static bool plots_has_spread(const plots *p)
{
    return p->report->n_seed > 1;
}

static void plots_widen(double *low, double *high, co_spread spread)
{
    *low = fmin(*low, spread.min);
    *high = fmax(*high, spread.max);
}

/* What precedes each part of a plot command. */
static const char *plots_comma(bool *first)
{
    const char *text = *first ? "  plot " : ", \\\n    ";

    *first = false;
    return text;
}

/* ---- lines, sorted by their last values ---- */

static int plots_compare_lines(const void *a, const void *b)
{
    const plots_line *x = a, *y = b;

    if (x->last != y->last)
        return x->last < y->last ? 1 : -1;
    if (x->begin != y->begin)
        return x->begin > y->begin ? 1 : -1;
    return (x->column > y->column) - (x->column < y->column);
}

static void plots_sort(plots *p)
{
    qsort(p->line, p->n_line, sizeof(*p->line), plots_compare_lines);
}

/* Add a line for each strategy with figures in this column, which ends at the most ranks. */
static void plots_add_column(plots *p, plots_column column)
{
    const co_report *report = p->report;
    size_t begin = 0, end, group;

    for (size_t k = 0; begin < report->n_cell; begin = end, k++) {
        plots_line line = {.begin = begin, .strategy = k, .column = column, .last = NAN};
        int most = 0;

        line.end = end = co_report_strategy_end(report, begin);
        for (size_t i = begin; i < end; i = group) {
            const co_spread spread =
                plots_spread(report, i, group = co_report_group_end(report, i), column);

            if (spread.n && report->cell[i].ranks > most) {
                most = report->cell[i].ranks;
                line.last = spread.mean;
            }
        }
        if (most)
            p->line[p->n_line++] = line;
    }
}

/* Add a line for each group that has a course. */
static void plots_add_courses(plots *p, plots_course course)
{
    const co_report *report = p->report;
    size_t begin = 0, end, group;

    for (size_t k = 0; begin < report->n_cell; begin = end, k++) {
        size_t nth = 0;

        end = co_report_strategy_end(report, begin);
        for (size_t i = begin; i < end; i = group, nth++) {
            plots_line line = {.begin = i, .strategy = k, .nth = nth, .last = NAN};

            line.end = group = co_report_group_end(report, i);
            for (size_t n = 0; n < plots_course_length(report, i, group); n++) {
                const co_spread spread = plots_course_spread(report, i, group, course, n);

                line.last = spread.n ? spread.mean : line.last;
            }
            if (isfinite(line.last))
                p->line[p->n_line++] = line;
        }
    }
}

/* ---- by the number of ranks ---- */

/* Ticks at the numbers of ranks in use, with a margin at both ends; points of adjacent strategies
   are offset by the fraction `aside` of the axis. */
static void plots_put_ranks_axis(plots *p, double aside)
{
    int marks[PLOTS_MAX_RANKS], n = 0, low = 1 << 30, high = 0;
    double room;

    for (size_t i = 0; i < p->report->n_cell; i++) {
        int ranks = p->report->cell[i].ranks, k = 0;

        low = ranks < low ? ranks : low;
        high = ranks > high ? ranks : high;
        while (k < n && marks[k] != ranks)
            k++;
        if (k == n && n < PLOTS_MAX_RANKS)
            marks[n++] = ranks;
    }
    room = high > low ? 0.08 * (high - low) : 0.5;
    p->aside = aside * (high - low + 2 * room);
    fprintf(p->out, "  set xlabel 'number of ranks'\n  set xrange [%g:%g]\n  set xtics (",
            low - room, high + room);
    for (int k = 0; k < n; k++)
        fprintf(p->out, "%s%d", k ? ", " : "", marks[k]);
    fprintf(p->out, ")\n");
}

/* Offset of a strategy's points, so that equal ones do not hide each other. */
static double plots_aside(const plots *p, size_t k)
{
    size_t n = 0;

    for (size_t i = 0; i < p->report->n_cell; i = co_report_strategy_end(p->report, i))
        n++;
    return p->aside * ((double)k - ((double)n - 1) / 2);
}

static void plots_put_line(const plots *p, bool *first, const plots_line *line)
{
    const bool predicted = line->column == PLOTS_PREDICTED;
    const int at = PLOTS_AT(line->column);
    const bool spread = plots_has_spread(p) && !predicted;

    fprintf(p->out, "%s$strategy_%zu using ($1%+g):%d", plots_comma(first), line->strategy,
            plots_aside(p, line->strategy), at);
    if (spread)
        fprintf(p->out, ":%d:%d", at + 1, at + 2);
    if (predicted)
        fprintf(p->out, " with lines lw 1.5 dt 2");
    else
        fprintf(p->out, " with %s lw 2.5 dt 1 pt %zu ps 1.5",
                spread ? "yerrorlines" : "linespoints", line->strategy % 6 * 2 + 5);
    fprintf(p->out, " lc rgb '%s' title ", plots_colours[line->strategy % PLOTS_COLOURS]);
    plots_put_text(p->out, p->report->cell[line->begin].strategy, PLOTS_MAX_NAME);
    if (predicted)
        fprintf(p->out, ".', predicted'");
}

static void plots_range(double *low, double *high, const plots *p, plots_column column)
{
    const co_report *report = p->report;

    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0, end; i < report->n_cell; i = end) {
        end = co_report_group_end(report, i);
        plots_widen(low, high, plots_spread(report, i, end, column));
    }
}

static void plots_put_speedup(plots *p)
{
    double low, high, most = 0;
    bool first = true, ideal = false;
    char note[PLOTS_MAX_NOTE];

    p->n_line = 0;
    plots_add_column(p, PLOTS_SPEEDUP);
    if (!p->n_line)
        return;
    plots_add_column(p, PLOTS_PREDICTED);
    plots_sort(p);
    for (size_t i = 0; i < p->report->n_cell; i++)
        most = fmax(most, p->report->cell[i].ranks);
    plots_range(&low, &high, p, PLOTS_SPEEDUP);
    snprintf(note, sizeof(note), "%s%s", plots_dashed,
             plots_has_spread(p) ? plots_points_spread : "");
    plots_begin(p, "speedup", "Speedup over one rank", note, 0);
    plots_put_ranks_axis(p, plots_has_spread(p) ? PLOTS_ASIDE : 0);
    fprintf(p->out,
            "  set ylabel 'speedup: training time of 1 rank / of N ranks'\n"
            "  set yrange [0:%g]\n",
            1.08 * fmax(most, high));
    for (size_t i = 0; i <= p->n_line; i++) {
        if (!ideal && (i == p->n_line || p->line[i].last <= most)) {
            fprintf(p->out, "%sx with lines lw 1.5 dt 1 lc rgb '#999999' title 'ideal: N'",
                    plots_comma(&first));
            ideal = true;
        }
        if (i < p->n_line)
            plots_put_line(p, &first, &p->line[i]);
    }
    plots_end(p);
}

static void plots_put_by_ranks(plots *p, plots_column column, const char *name, const char *title,
                               const char *label)
{
    char note[PLOTS_MAX_NOTE];
    double low, high;
    bool first = true;

    p->n_line = 0;
    plots_add_column(p, column);
    if (!p->n_line)
        return;
    plots_sort(p);
    plots_range(&low, &high, p, column);
    snprintf(note, sizeof(note), "%s%s", plots_side_by_side,
             plots_has_spread(p) ? plots_points_spread : "");
    plots_begin(p, name, title, note, 0);
    plots_put_ranks_axis(p, PLOTS_ASIDE);
    if (column == PLOTS_MIB)
        fprintf(p->out, "  set ylabel '%s'\n  set logscale y\n  set yrange [%g:%g]\n", label,
                low / 2, high * 2);
    else
        plots_put_y_axis(p, label, low, high);
    for (size_t i = 0; i < p->n_line; i++)
        plots_put_line(p, &first, &p->line[i]);
    plots_end(p);
}

/* ---- by the seconds of training ---- */

static void plots_course_range(double *low, double *high, const plots *p, plots_course course)
{
    const co_report *report = p->report;

    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0, end; i < report->n_cell; i = end) {
        end = co_report_group_end(report, i);
        for (size_t k = 0; k < plots_course_length(report, i, end); k++)
            plots_widen(low, high, plots_course_spread(report, i, end, course, k));
    }
}

/* Index of a last point that was measured again after training, at the same time; 0: none. It is
   that of averaged weights. */
static size_t plots_anew(const co_report *report, const plots_line *line)
{
    const size_t n = plots_course_length(report, line->begin, line->end);

    if (n < 2 || plots_course_seconds(report, line->begin, line->end, n - 1) !=
                     plots_course_seconds(report, line->begin, line->end, n - 2))
        return 0;
    return n - 1;
}

/* From min to max: a band along the course, and a bar at a point that was measured again. */
static void plots_put_band(const plots *p, bool *first, const plots_line *line, plots_course course)
{
    const char *colour = plots_colours[line->strategy % PLOTS_COLOURS];
    const size_t anew = plots_anew(p->report, line);
    const int at = PLOTS_AT(course);

    fprintf(p->out,
            "%s$curve_%zu using 1:%d:%d with filledcurves fc rgb '%s' fs transparent solid 0.18 "
            "noborder notitle",
            plots_comma(first), line->begin, at + 1, at + 2, colour);
    if (anew)
        fprintf(p->out,
                "%s$curve_%zu using 1:%d:%d:%d every ::%zu with yerrorbars lw 1.5 pt 0 lc rgb '%s' "
                "notitle",
                plots_comma(first), line->begin, at, at + 1, at + 2, anew, colour);
}

/* The colour depends on the strategy, the dashes on the number of ranks. */
static void plots_put_course(const plots *p, bool *first, const plots_line *line,
                             plots_course course)
{
    const co_cell *cell = &p->report->cell[line->begin];

    fprintf(p->out, "%s$curve_%zu using 1:%d with linespoints lw 2 dt %zu lc rgb '%s' ",
            plots_comma(first), line->begin, PLOTS_AT(course), line->nth % 5 + 1,
            plots_colours[line->strategy % PLOTS_COLOURS]);
    fprintf(p->out, "pt %zu ps 0.9 title ", line->nth % 6 * 2 + 5);
    plots_put_text(p->out, cell->strategy, PLOTS_MAX_NAME);
    fprintf(p->out, ".', %d rank%s'", cell->ranks, co_plural((uint64_t)cell->ranks));
}

static void plots_put_by_time(plots *p, plots_course course, const char *name, const char *title,
                              const char *label)
{
    char note[PLOTS_MAX_NOTE];
    bool first = true, anew = false;
    double low, high;

    p->n_line = 0;
    plots_add_courses(p, course);
    if (!p->n_line)
        return;
    plots_sort(p);
    plots_course_range(&low, &high, p, course);
    for (size_t i = 0; i < p->n_line; i++)
        anew = anew || plots_anew(p->report, &p->line[i]);
    snprintf(note, sizeof(note), "%s%s%s", plots_has_spread(p) ? plots_bands_spread : "",
             plots_has_spread(p) && anew ? "; " : "", anew ? plots_averaged : "");
    plots_begin(p, name, title, note, p->n_line);
    fprintf(p->out, "  set xlabel 'training time, without start-up and evaluation [s]'\n"
                    "  set xrange [0:*]\n"
                    "  set xtics auto\n");
    plots_put_y_axis(p, label, low, high);
    for (size_t i = 0; i < p->n_line && plots_has_spread(p); i++)
        plots_put_band(p, &first, &p->line[i], course);
    for (size_t i = 0; i < p->n_line; i++)
        plots_put_course(p, &first, &p->line[i], course);
    plots_end(p);
}

/* The plots of a metric of the config: NAME and NAME-time. */
static void plots_put_metric(plots *p, unsigned i)
{
    const char *metric = p->report->metrics->metric[i]->name;
    char name[48], title[64], label[48];

    snprintf(label, sizeof(label), "test %s", metric);
    snprintf(title, sizeof(title), "Test %s after training", metric);
    plots_put_by_ranks(p, (plots_column)(PLOTS_COLUMNS + i), metric, title, label);
    snprintf(name, sizeof(name), "%s-time", metric);
    snprintf(title, sizeof(title), "Test %s during training", metric);
    plots_put_by_time(p, (plots_course)(PLOTS_COURSES + i), name, title, label);
}

void plots_put_all(plots *p)
{
    plots_put_speedup(p);
    plots_put_by_ranks(p, PLOTS_ACCURACY, "accuracy", "Test accuracy after training",
                       "test accuracy (fraction of test samples)");
    plots_put_by_ranks(p, PLOTS_LOSS, "loss", "Test loss after training",
                       "test loss (mean per sample)");
    plots_put_by_time(p, PLOTS_COURSE_ACCURACY, "accuracy-time", "Test accuracy during training",
                      "test accuracy (fraction of test samples)");
    plots_put_by_time(p, PLOTS_COURSE_LOSS, "loss-time", "Test loss during training",
                      "test loss (mean per sample)");
    for (unsigned i = 0; i < plots_metrics(p->report); i++)
        plots_put_metric(p, i);
    plots_put_by_ranks(p, PLOTS_MIB, "bytes",
                       "Bytes sent by rank 0 in the whole run (one rank alone sends none)",
                       "sent by rank 0 [MiB], logarithmic axis");
}
