/*
 * plots.c - a comparison as a script for gnuplot that contains its data: the data, and what all
 * plots share.
 *
 * The script stays with the images, so that a user can change it and draw them again.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/plural.h"
#include "report/plots.h"

#define PLOTS_MAX_PATH  4352
#define PLOTS_MAX_ABOUT 110 /* bytes of a line below the title */
#define PLOTS_MAX_ROWS  22  /* rows of a legend in full-size letters */
#define PLOTS_NEAR_ZERO 0.4 /* fraction of an axis that may be empty before it is cut instead */

const char *const co_report_plots[] = {"speedup",   "accuracy", "loss", "accuracy-time",
                                       "loss-time", "bytes",    NULL};

void plots_put_text(FILE *out, const char *text, size_t max)
{
    size_t n = 0;

    fputc('\'', out);
    for (; *text && n < max; text++, n++) {
        if (*text == '\'')
            fputc('\'', out);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
    fputs(*text ? "...'" : "'", out);
}

/* ---- the figures ---- */

unsigned plots_metrics(const co_report *report)
{
    return report->metrics ? (unsigned)report->metrics->n : 0;
}

/* A logarithmic axis has no 0. */
static double plots_value(const co_cell *cell, plots_column column)
{
    static const co_figure figures[PLOTS_COLUMNS] = {
        [PLOTS_SPEEDUP] = CO_FIGURE_SPEEDUP,        [PLOTS_PREDICTED] = CO_FIGURE_PREDICTED,
        [PLOTS_ACCURACY] = CO_FIGURE_TEST_ACCURACY, [PLOTS_LOSS] = CO_FIGURE_TEST_LOSS,
        [PLOTS_MIB] = CO_FIGURE_BYTES_SENT,
    };
    const double value = column < PLOTS_COLUMNS ? co_figure_of(cell, figures[column])
                                                : cell->metric[column - PLOTS_COLUMNS];

    if (column != PLOTS_MIB)
        return value;
    return value > 0 ? value / (1 << 20) : NAN;
}

co_spread plots_spread(const co_report *report, size_t begin, size_t end, plots_column column)
{
    double value[CO_REPORT_MAX_SEEDS];
    size_t n = 0;

    for (size_t i = begin; i < end && n < CO_REPORT_MAX_SEEDS; i++)
        value[n++] = plots_value(&report->cell[i], column);
    return co_spread_of(value, n);
}

static double plots_course_value(const co_cell_point *point, plots_course course)
{
    if (course >= PLOTS_COURSES)
        return point->metric[course - PLOTS_COURSES];
    return course == PLOTS_COURSE_ACCURACY ? point->test_accuracy : point->test_loss;
}

co_spread plots_course_spread(const co_report *report, size_t begin, size_t end,
                              plots_course course, size_t k)
{
    double value[CO_REPORT_MAX_SEEDS];
    size_t n = 0;

    for (size_t i = begin; i < end && n < CO_REPORT_MAX_SEEDS; i++) {
        const co_cell *cell = &report->cell[i];

        if (k < cell->n_point)
            value[n++] = plots_course_value(&cell->point[k], course);
    }
    return co_spread_of(value, n);
}

double plots_course_seconds(const co_report *report, size_t begin, size_t end, size_t k)
{
    double value[CO_REPORT_MAX_SEEDS];
    size_t n = 0;

    for (size_t i = begin; i < end && n < CO_REPORT_MAX_SEEDS; i++)
        if (k < report->cell[i].n_point)
            value[n++] = report->cell[i].point[k].train_seconds;
    return co_spread_of(value, n).mean;
}

size_t plots_course_length(const co_report *report, size_t begin, size_t end)
{
    size_t most = 0;

    for (size_t i = begin; i < end; i++)
        if (report->cell[i].n_point > most)
            most = report->cell[i].n_point;
    return most;
}

static void plots_put_real(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, " %.9g", value);
    else
        fprintf(out, " NaN");
}

static void plots_put_spread(FILE *out, co_spread spread)
{
    plots_put_real(out, spread.mean);
    plots_put_real(out, spread.min);
    plots_put_real(out, spread.max);
}

/* Names of the columns of metrics. */
static void plots_put_metrics(const plots *p)
{
    for (unsigned i = 0; i < plots_metrics(p->report); i++)
        fprintf(p->out, ", test %s", p->report->metrics->metric[i]->name);
}

static void plots_put_strategies(const plots *p)
{
    const co_report *report = p->report;
    size_t begin = 0, end, group;

    for (size_t k = 0; begin < report->n_cell; begin = end, k++) {
        end = co_report_strategy_end(report, begin);
        fputs("# ", p->out);
        plots_put_text(p->out, report->cell[begin].strategy, PLOTS_MAX_ABOUT);
        fprintf(p->out,
                ": ranks; mean, min and max of speedup, predicted speedup, test accuracy, test "
                "loss, MiB sent");
        plots_put_metrics(p);
        fprintf(p->out, "\n$strategy_%zu << EOD\n", k);
        for (size_t i = begin; i < end; i = group) {
            group = co_report_group_end(report, i);
            fprintf(p->out, "%d", report->cell[i].ranks);
            for (plots_column c = 0; c < PLOTS_COLUMNS + plots_metrics(report); c++)
                plots_put_spread(p->out, plots_spread(report, i, group, c));
            fputc('\n', p->out);
        }
        fprintf(p->out, "EOD\n");
    }
}

void plots_put_data(const plots *p)
{
    const co_report *report = p->report;

    plots_put_strategies(p);
    for (size_t i = 0, end; i < report->n_cell; i = end) {
        size_t length;

        end = co_report_group_end(report, i);
        length = plots_course_length(report, i, end);
        if (length == 0)
            continue;
        fprintf(p->out, "# seconds of training; mean, min and max of test accuracy and test loss");
        plots_put_metrics(p);
        fprintf(p->out, "\n$curve_%zu << EOD\n", i);
        for (size_t k = 0; k < length; k++) {
            plots_put_real(p->out, plots_course_seconds(report, i, end, k));
            for (plots_course c = 0; c < PLOTS_COURSES + plots_metrics(report); c++)
                plots_put_spread(p->out, plots_course_spread(report, i, end, c, k));
            fputc('\n', p->out);
        }
        fprintf(p->out, "EOD\n");
    }
}

/* ---- what all plots share ---- */

void plots_put_header(const plots *p)
{
    fputs("# Written by `cohort compare`. To draw again after a change: gnuplot " CO_REPORT_SCRIPT
          "\n"
          "set encoding utf8\n"
          "set datafile missing 'NaN'\n"
          "set border 3 lc rgb '#444444'\n"
          "set tics nomirror out\n"
          "set grid back lt 1 lc rgb '#cccccc' lw 0.5\n"
          "set samples 2\n"
          "png = strstrt(GPVAL_TERMINALS, 'pngcairo') > 0 ? 'pngcairo' : 'png truecolor'\n",
          p->out);
}

/* ", batch 128", or from minimum to maximum if it grows with the ranks. */
static void plots_about_batch(char *out, size_t size, const co_report *report)
{
    double least = NAN, most = NAN;

    out[0] = '\0';
    for (size_t i = 0; i < report->n_cell; i++) {
        least = fmin(least, report->cell[i].batch);
        most = fmax(most, report->cell[i].batch);
    }
    if (least >= 0 && most == least)
        snprintf(out, size, ", batch %.0f", most);
    else if (least >= 0 && most < 1e18)
        snprintf(out, size, ", batch %.0f to %.0f", least, most);
}

/* Below the title: what was trained, and where. */
static void plots_put_about(const plots *p)
{
    const co_report *report = p->report;
    const co_cell *known = NULL;
    char text[512], batch[80], epochs[40] = "";

    for (size_t i = 0; i < report->n_cell && !known; i++)
        known = report->cell[i].model[0] ? &report->cell[i] : NULL;
    plots_about_batch(batch, sizeof(batch), report);
    if (known && known->epochs > 0)
        snprintf(epochs, sizeof(epochs), ", %.0f epoch%s", known->epochs,
                 co_plural((uint64_t)known->epochs));
    snprintf(text, sizeof(text), "%s%s%s%s%s (%s)", known ? known->model : "",
             known && known->dataset[0] ? " on " : "", known ? known->dataset : "", batch, epochs,
             report->config ? report->config : "");
    fprintf(p->out, "  set label 2 ");
    plots_put_text(p->out, text, PLOTS_MAX_ABOUT);
    fprintf(p->out, " at screen 0.02, 0.925 left noenhanced font ','.small\n  set label 3 ");
    snprintf(text, sizeof(text), "%s %s; %s", report->n_seed > 1 ? "seeds" : "seed",
             report->seeds ? report->seeds : "not known",
             report->machine ? report->machine : "machine not known");
    plots_put_text(p->out, text, PLOTS_MAX_ABOUT);
    fprintf(p->out, " at screen 0.02, 0.893 left noenhanced font ','.small\n");
}

void plots_begin(const plots *p, const char *name, const char *title, const char *note, size_t rows)
{
    fprintf(p->out,
            "\ndo for [ending in 'png svg'] {\n"
            "  if (ending eq 'png') {\n"
            "    eval 'set terminal '.png.' size 1500,900 font \"sans,18\" background "
            "\"#ffffff\"'\n"
            "    big = 25; small = 16; legend = %d\n"
            "  } else {\n"
            "    set terminal svg size 1000,600 font 'sans,12' background '#ffffff'\n"
            "    big = 17; small = 11; legend = %d\n"
            "  }\n"
            "  set output '%s.'.ending\n"
            "  unset title\n  unset label\n  unset arrow\n  unset logscale\n"
            "  set tmargin at screen 0.83\n"
            "  set label 1 '%s' at screen 0.02, 0.967 left noenhanced font ','.big\n",
            rows > PLOTS_MAX_ROWS ? 11 : 16, rows > PLOTS_MAX_ROWS ? 8 : 11, name, title);
    plots_put_about(p);
    fprintf(p->out,
            "  set label 4 '%s' at screen 0.02, 0.861 left noenhanced font ','.small\n"
            "  set key outside right top vertical Left reverse noenhanced samplen 3 font "
            "','.legend\n",
            note);
}

void plots_end(const plots *p)
{
    fprintf(p->out, "\n  unset output\n}\n");
}

/* Mark a cut axis: two strokes across its foot, with a gap between them. */
static void plots_put_cut(const plots *p)
{
    fputs("  set arrow 1 from graph 0, 0.022 to graph 0, 0.040 nohead front lw 5 lc rgb '#ffffff'\n"
          "  set arrow 2 from graph -0.010, 0.012 to graph 0.010, 0.032 nohead front lw 2 lc rgb "
          "'#444444'\n"
          "  set arrow 3 from graph -0.010, 0.030 to graph 0.010, 0.050 nohead front lw 2 lc rgb "
          "'#444444'\n",
          p->out);
}

void plots_put_y_axis(const plots *p, const char *label, double low, double high)
{
    const double room = fmax(0.09 * (high - low), 0.002 * fmax(1, fabs(high)));
    const bool cut = !(low >= 0 && low <= PLOTS_NEAR_ZERO * high);

    fprintf(p->out, "  set ylabel \"%s%s\"\n  set yrange [%g:%g]\n", label,
            cut ? "\\n(axis cut: it does not start at 0)" : "", cut ? low - room : 0, high + room);
    if (cut)
        plots_put_cut(p);
}

co_status co_report_write_script(const char *dir, const co_report *report)
{
    plots p = {.report = report};
    char path[PLOTS_MAX_PATH];
    co_atomic_file *file;
    int n = snprintf(path, sizeof(path), "%s/" CO_REPORT_SCRIPT, dir);
    co_status st;

    if (n < 0 || (size_t)n >= sizeof(path))
        return co_fail(CO_E_USAGE, "%s: the path is too long", dir);
    p.line = co_calloc(2 * report->n_cell + 1, sizeof(*p.line));
    if (!p.line)
        return CO_E_NOMEM;
    st = co_atomic_open(&file, path);
    if (st == CO_OK) {
        p.out = co_atomic_stream(file);
        plots_put_header(&p);
        plots_put_data(&p);
        plots_put_all(&p);
        st = co_atomic_commit(file);
    }
    co_free(p.line);
    return st;
}
