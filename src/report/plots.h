/*
 * plots.h - what the two files share that write the script for gnuplot: plots.c the frame of every
 * plot and the figures, plots_figures.c the plots.
 */
#ifndef CO_REPORT_PLOTS_H
#define CO_REPORT_PLOTS_H

#include <stdbool.h>

#include "report/report.h"

/* Of $strategy_<k>: the number of ranks, then three columns each: mean, min and max. */
typedef enum plots_column {
    PLOTS_SPEEDUP,
    PLOTS_PREDICTED,
    PLOTS_ACCURACY,
    PLOTS_LOSS,
    PLOTS_MIB,
    PLOTS_COLUMNS /* and after these the report's metrics */
} plots_column;

/* Of $curve_<first cell of the group>: seconds, then three columns each. */
typedef enum plots_course {
    PLOTS_COURSE_ACCURACY,
    PLOTS_COURSE_LOSS,
    PLOTS_COURSES /* likewise */
} plots_course;

/* gnuplot's number of the column that holds the mean; min and max follow. */
#define PLOTS_AT(column) (2 + 3 * (int)(column))

/* One in a plot and its legend. */
typedef struct plots_line {
    size_t begin, end; /* cells */
    size_t strategy;   /* its number: the colour */
    size_t nth;        /* of the strategy's lines: dashes and marks */
    plots_column column;
    double last; /* where it ends: the legend has the same order */
} plots_line;

typedef struct plots {
    FILE *out;
    const co_report *report;
    plots_line *line; /* room for twice the cells */
    size_t n_line;
    double aside; /* ranks between the points of one strategy and of the next */
} plots;

/* ---- plots.c ---- */

/* In single quotes, where gnuplot expands nothing; cut after `max` bytes. */
void plots_put_text(FILE *out, const char *text, size_t max);
/* How many metrics there are besides. */
unsigned plots_metrics(const co_report *report);
/* Means of a column over a group, or of point `k` of its course. */
co_spread plots_spread(const co_report *report, size_t begin, size_t end, plots_column column);
co_spread plots_course_spread(const co_report *report, size_t begin, size_t end,
                              plots_course course, size_t k);
/* When point `k` was measured: the mean. */
double plots_course_seconds(const co_report *report, size_t begin, size_t end, size_t k);
/* The points that the longest course of a group has. */
size_t plots_course_length(const co_report *report, size_t begin, size_t end);
void plots_put_header(const plots *p);
void plots_put_data(const plots *p);
/* Opens the loop over both formats; plots_end closes it. `note` is below the title. */
void plots_begin(const plots *p, const char *name, const char *title, const char *note,
                 size_t rows);
void plots_end(const plots *p);
/* From 0 where the values are not far from it; else the axis is cut, and is marked and says so. */
void plots_put_y_axis(const plots *p, const char *label, double low, double high);

/* ---- plots_figures.c ---- */

void plots_put_all(plots *p);

#endif
