/*
 * plots.c - a comparison as pictures: a script for gnuplot that holds the figures, too.
 *
 * The script stays beside the pictures, so that a user can change and draw them again. Texts of the
 * user stand in single quotes, where gnuplot expands nothing.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/fs.h"
#include "report/report.h"

#define PLOTS_MAX_PATH  4352
#define PLOTS_MAX_NAME  48 /* of a strategy, in the legend */
#define PLOTS_MAX_ROWS  22 /* of a legend in letters of full size */
#define PLOTS_ASIDE     0.012
#define PLOTS_MAX_RANKS 64 /* different numbers of ranks that get a mark on the axis */

const char *const co_report_plots[] = {"speedup", "accuracy", "accuracy-time", "bytes", NULL};

/* Okabe and Ito's colours, which people with colour blindness can tell apart, and black. */
static const char *const plots_colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                            "#e69f00", "#56b4e9", "#7a5195", "#000000"};

#define PLOTS_COLOURS (sizeof(plots_colours) / sizeof(plots_colours[0]))

/* The columns of $strategy_<k>. */
enum { PLOTS_RANKS = 1, PLOTS_SPEEDUP, PLOTS_PREDICTED, PLOTS_ACCURACY, PLOTS_MIB };

typedef struct plots {
    FILE *out;
    const co_report *report;
    double aside; /* ranks between the points of one strategy and of the next */
} plots;

static double plots_column(const co_cell *cell, int column)
{
    switch (column) {
    case PLOTS_RANKS:
        return cell->ranks;
    case PLOTS_SPEEDUP:
        return cell->speedup;
    case PLOTS_PREDICTED:
        return cell->predicted;
    case PLOTS_ACCURACY:
        return cell->test_accuracy;
    default: /* an axis in powers of ten knows no 0 */
        return cell->bytes_sent > 0 ? cell->bytes_sent / (1 << 20) : NAN;
    }
}

/* The first cell behind those of the strategy that begins at `begin`. */
static size_t plots_strategy_end(const co_report *report, size_t begin)
{
    size_t end = begin + 1;

    while (end < report->n_cell &&
           strcmp(report->cell[end].strategy, report->cell[begin].strategy) == 0)
        end++;
    return end;
}

static bool plots_have(const co_report *report, size_t begin, size_t end, int column)
{
    for (size_t i = begin; i < end; i++)
        if (isfinite(plots_column(&report->cell[i], column)))
            return true;
    return false;
}

static void plots_put_name(FILE *out, const char *name)
{
    size_t n = 0;

    fputc('\'', out);
    for (; *name && n < PLOTS_MAX_NAME; name++, n++) {
        if (*name == '\'')
            fputc('\'', out);
        fputc((unsigned char)*name < ' ' ? ' ' : *name, out);
    }
    fputs(*name ? "...'" : "'", out);
}

/* ---- the figures ---- */

static void plots_put_real(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, " %.9g", value);
    else
        fprintf(out, " NaN");
}

static void plots_put_data(const plots *p)
{
    const co_report *report = p->report;
    size_t begin = 0, end;

    for (size_t k = 0; begin < report->n_cell; begin = end, k++) {
        end = plots_strategy_end(report, begin);
        fputs("# ", p->out);
        plots_put_name(p->out, report->cell[begin].strategy);
        fprintf(p->out,
                ": ranks, speedup, predicted speedup, test accuracy, MiB sent\n"
                "$strategy_%zu << EOD\n",
                k);
        for (size_t i = begin; i < end; i++) {
            for (int column = PLOTS_RANKS; column <= PLOTS_MIB; column++)
                plots_put_real(p->out, plots_column(&report->cell[i], column));
            fputc('\n', p->out);
        }
        fprintf(p->out, "EOD\n");
    }
    for (size_t i = 0; i < report->n_cell; i++) {
        const co_cell *cell = &report->cell[i];

        if (cell->n_point == 0)
            continue;
        fprintf(p->out, "# seconds of training, test accuracy\n$curve_%zu << EOD\n", i);
        for (size_t k = 0; k < cell->n_point; k++)
            fprintf(p->out, " %.9g %.9g\n", cell->point[k].train_seconds,
                    cell->point[k].test_accuracy);
        fprintf(p->out, "EOD\n");
    }
}

/* ---- what all plots share ---- */

static void plots_put_header(const plots *p)
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

/* Marks on the axis at the numbers of ranks there are, and some room beside the outer ones; the
   points of different strategies stand `aside` of the axis from each other. */
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
    fprintf(p->out, "  set xlabel 'ranks'\n  set xrange [%g:%g]\n  set xtics (", low - room,
            high + room);
    for (int k = 0; k < n; k++)
        fprintf(p->out, "%s%d", k ? ", " : "", marks[k]);
    fprintf(p->out, ")\n");
}

static void plots_widen(double *low, double *high, double value)
{
    if (isfinite(value)) {
        *low = fmin(*low, value);
        *high = fmax(*high, value);
    }
}

/* From the least to the largest accuracy at the end, or in the course of training, and some room:
   an axis that fits one value alone would be none. */
static void plots_put_accuracy_axis(const plots *p, bool course)
{
    double low = INFINITY, high = -INFINITY, room;

    for (size_t i = 0; i < p->report->n_cell; i++) {
        const co_cell *cell = &p->report->cell[i];

        plots_widen(&low, &high, cell->test_accuracy);
        for (size_t k = 0; course && k < cell->n_point; k++)
            plots_widen(&low, &high, cell->point[k].test_accuracy);
    }
    room = fmax(0.05 * (high - low), 0.002);
    fprintf(p->out, "  set ylabel 'test accuracy'\n  set yrange [%g:%g]\n", low - room,
            high + room);
}

/* Opens the loop over both formats. */
static void plots_begin(const plots *p, const char *name, const char *title, size_t rows)
{
    fprintf(p->out,
            "\ndo for [ending in 'png svg'] {\n"
            "  if (ending eq 'png') {\n"
            "    eval 'set terminal '.png.' size 1500,900 font \"sans,19\" background "
            "\"#ffffff\"'\n"
            "    legend = %d\n"
            "  } else {\n"
            "    set terminal svg size 1000,600 font 'sans,13' background '#ffffff'\n"
            "    legend = %d\n"
            "  }\n"
            "  set output '%s.'.ending\n"
            "  set title '%s' noenhanced\n"
            "  set key outside right top vertical Left reverse noenhanced samplen 3 font "
            "','.legend\n"
            "  unset logscale\n",
            rows > PLOTS_MAX_ROWS ? 11 : 15, rows > PLOTS_MAX_ROWS ? 8 : 11, name, title);
}

static void plots_end(const plots *p)
{
    fprintf(p->out, "\n  unset output\n}\n");
}

/* `, \` between the parts of a plot command. */
static const char *plots_comma(bool *first)
{
    const char *text = *first ? "  plot " : ", \\\n    ";

    *first = false;
    return text;
}

/* How far to the side a strategy's points stand: equal ones would hide each other. */
static double plots_aside(const plots *p, size_t k)
{
    size_t n = 0;

    for (size_t i = 0; i < p->report->n_cell; i = plots_strategy_end(p->report, i))
        n++;
    return p->aside * ((double)k - ((double)n - 1) / 2);
}

/* One line a strategy that has figures in this column; `what` stands behind its name. */
static void plots_put_lines(const plots *p, bool *first, int column, const char *what)
{
    const co_report *report = p->report;
    size_t begin = 0, end;

    for (size_t k = 0; begin < report->n_cell; begin = end, k++) {
        end = plots_strategy_end(report, begin);
        if (!plots_have(report, begin, end, column))
            continue;
        fprintf(p->out, "%s$strategy_%zu using ($1%+g):%d", plots_comma(first), k,
                plots_aside(p, k), column);
        if (column == PLOTS_PREDICTED)
            fprintf(p->out, " with lines lw 1.5 dt 2");
        else
            fprintf(p->out, " with linespoints lw 2.5 dt 1 pt %zu ps 1.5", k % 6 * 2 + 5);
        fprintf(p->out, " lc rgb '%s' title ", plots_colours[k % PLOTS_COLOURS]);
        plots_put_name(p->out, report->cell[begin].strategy);
        if (*what)
            fprintf(p->out, ".'%s'", what);
    }
}

/* ---- the plots ---- */

static void plots_put_speedup(plots *p)
{
    bool first = true;

    plots_begin(p, "speedup", "Speedup over one rank", 0);
    plots_put_ranks_axis(p, 0);
    fprintf(p->out, "  set ylabel 'training time of 1 rank / of N ranks'\n  set yrange [0:*]\n");
    fprintf(p->out, "%sx with lines lw 1.5 dt 1 lc rgb '#aaaaaa' title 'ideal'",
            plots_comma(&first));
    plots_put_lines(p, &first, PLOTS_SPEEDUP, "");
    plots_put_lines(p, &first, PLOTS_PREDICTED, ", predicted");
    plots_end(p);
}

static void plots_put_accuracy(plots *p)
{
    bool first = true;

    plots_begin(p, "accuracy", "Test accuracy after training", 0);
    plots_put_ranks_axis(p, PLOTS_ASIDE);
    plots_put_accuracy_axis(p, false);
    plots_put_lines(p, &first, PLOTS_ACCURACY, "");
    plots_end(p);
}

static void plots_put_bytes(plots *p)
{
    double low = INFINITY, high = -INFINITY;
    bool first = true;

    plots_begin(p, "bytes", "Bytes sent by a rank (one alone sends none)", 0);
    plots_put_ranks_axis(p, PLOTS_ASIDE);
    for (size_t i = 0; i < p->report->n_cell; i++)
        plots_widen(&low, &high, plots_column(&p->report->cell[i], PLOTS_MIB));
    fprintf(p->out,
            "  set ylabel 'sent by one rank [MiB]'\n  set logscale y\n"
            "  set yrange [%g:%g]\n",
            low / 2, high * 2);
    plots_put_lines(p, &first, PLOTS_MIB, "");
    plots_end(p);
}

/* A colour is a strategy, a pattern of dashes a number of ranks. */
static void plots_put_accuracy_time(const plots *p, size_t curves)
{
    const co_report *report = p->report;
    size_t begin = 0, end;
    bool first = true;

    plots_begin(p, "accuracy-time", "Test accuracy during training", curves);
    fprintf(p->out, "  set xlabel 'training time [s]'\n  set xrange [0:*]\n"
                    "  set xtics auto\n");
    plots_put_accuracy_axis(p, true);
    for (size_t k = 0; begin < report->n_cell; begin = end, k++) {
        end = plots_strategy_end(report, begin);
        for (size_t i = begin; i < end; i++) {
            const co_cell *cell = &report->cell[i];

            if (cell->n_point == 0)
                continue;
            fprintf(p->out, "%s$curve_%zu using 1:2 with linespoints lw 2 dt %zu lc rgb '%s' ",
                    plots_comma(&first), i, (i - begin) % 5 + 1, plots_colours[k % PLOTS_COLOURS]);
            fprintf(p->out, "pt %zu ps 0.9 title ", (i - begin) % 6 * 2 + 5);
            plots_put_name(p->out, cell->strategy);
            fprintf(p->out, ".', %d rank%s'", cell->ranks, cell->ranks == 1 ? "" : "s");
        }
    }
    plots_end(p);
}

static void plots_put(plots *p)
{
    const co_report *report = p->report;
    size_t curves = 0;

    for (size_t i = 0; i < report->n_cell; i++)
        curves += report->cell[i].n_point > 0;
    plots_put_header(p);
    plots_put_data(p);
    if (plots_have(report, 0, report->n_cell, PLOTS_SPEEDUP))
        plots_put_speedup(p);
    if (plots_have(report, 0, report->n_cell, PLOTS_ACCURACY))
        plots_put_accuracy(p);
    if (curves)
        plots_put_accuracy_time(p, curves);
    if (plots_have(report, 0, report->n_cell, PLOTS_MIB))
        plots_put_bytes(p);
}

co_status co_report_write_script(const char *dir, const co_report *report)
{
    plots p = {.report = report};
    char path[PLOTS_MAX_PATH];
    co_atomic_file *file;
    int n = snprintf(path, sizeof(path), "%s/" CO_REPORT_SCRIPT, dir);

    if (n < 0 || (size_t)n >= sizeof(path))
        return co_fail(CO_E_USAGE, "%s: the path is too long", dir);
    CO_TRY(co_atomic_open(&file, path));
    p.out = co_atomic_stream(file);
    plots_put(&p);
    return co_atomic_commit(file);
}
