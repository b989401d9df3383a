/*
 * plots.h - shared by the two writers of the gnuplot script: plots.c (data, and the frame of every
 * plot) and plots_figures.c (the plots).
 */
#ifndef CO_REPORT_PLOTS_H
#define CO_REPORT_PLOTS_H

#include <stdbool.h>

#include "report/report.h"

/* Columns of $strategy_<k>: the number of ranks, then mean, min and max of each of these. */
typedef enum plots_column {
    PLOTS_SPEEDUP,
    PLOTS_PREDICTED,
    PLOTS_ACCURACY,
    PLOTS_LOSS,
    PLOTS_MIB,
    PLOTS_COLUMNS /* followed by the report's metrics */
} plots_column;

/* Columns of $curve_<first cell of the group>: seconds, then mean, min and max of each of these. */
typedef enum plots_course {
    PLOTS_COURSE_ACCURACY,
    PLOTS_COURSE_LOSS,
    PLOTS_COURSES /* likewise */
} plots_course;

/* gnuplot's number of the column with the mean; min and max follow. */
#define PLOTS_AT(column) (2 + 3 * (int)(column))

/* A line in a plot and its legend. */
typedef struct plots_line {
    size_t begin, end; /* cells */
    size_t strategy;   /* its index, for the colour */
    size_t nth;        /* index among the strategy's lines, for dashes and marks */
    plots_column column;
    double last; /* its last value, by which the legend is sorted */
} plots_line;

typedef struct plots {
    FILE *out;
    const co_report *report;
    plots_line *line; /* room for twice the cells */
    size_t n_line;
    double aside; /* offset between the points of adjacent strategies, in ranks */
} plots;

/* ---- plots.c ---- */

/* Write `text` in single quotes, where gnuplot expands nothing, truncated to `max` bytes. */
void plots_put_text(FILE *out, const char *text, size_t max);
/* Number of the report's metrics. */
unsigned plots_metrics(const co_report *report);
/* Statistics of a column over a group, or of point `k` of its course. */
co_spread plots_spread(const co_report *report, size_t begin, size_t end, plots_column column);
co_spread plots_course_spread(const co_report *report, size_t begin, size_t end,
                              plots_course course, size_t k);
/* Seconds at which point `k` was measured: the mean. */
double plots_course_seconds(const co_report *report, size_t begin, size_t end, size_t k);
/* Number of points of a group's longest course. */
size_t plots_course_length(const co_report *report, size_t begin, size_t end);
void plots_put_header(const plots *p);
void plots_put_data(const plots *p);
/* Open the loop over both formats, which plots_end closes. `note` is written below the title. */
void plots_begin(const plots *p, const char *name, const char *title, const char *note,
                 size_t rows);
void plots_end(const plots *p);
/* From 0 if the values are near it; else the axis is cut, with a mark and a note. */
void plots_put_y_axis(const plots *p, const char *label, double low, double high);

/* ---- plots_figures.c ---- */

void plots_put_all(plots *p);

#endif
