/*
 * report.h - compare several runs: read from their run directories, related to each other, written
 * as tables and as a script that draws plots. Does not start runs.
 */
#ifndef CO_REPORT_REPORT_H
#define CO_REPORT_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include <cohort/status.h>

#include "metrics/metrics.h"

typedef enum co_cell_state {
    CO_CELL_WAITING, /* not run */
    CO_CELL_DONE,
    CO_CELL_FAILED,
    CO_CELL_STOPPED /* the user ended it */
} co_cell_state;

/* Results on the test split after `train_seconds` of training; NaN if not measured. */
typedef struct co_cell_point {
    double train_seconds, test_accuracy, test_loss;
    double metric[CO_METRICS_MAX]; /* of the cell's metrics */
} co_cell_point;

/* Results of one strategy on one number of ranks with one seed. Unknown numbers are NaN. */
typedef struct co_cell {
    const char *strategy; /* borrowed; for people: "local period=16" */
    const char *dir;      /* borrowed; the run directory */
    const char *seed;     /* borrowed; NULL: there is one for all cells */
    int ranks;
    co_cell_state state;
    char why[320]; /* reason of a failure, one line */
    double train_seconds, samples_per_second, test_accuracy, test_loss;
    const co_metric_set *metrics;         /* borrowed; of the config; NULL: none */
    double metric[CO_METRICS_MAX];        /* of the test split */
    double compute_seconds, sync_seconds; /* of rank 0: T_comp and T_sync of the whole run */
    double bytes_sent;                    /* by rank 0 */
    double steps;
    double speedup, predicted;   /* over one rank; see co_report_relate */
    double batch, epochs;        /* global; planned */
    char model[48], dataset[48]; /* names; "" if unknown */
    size_t n_point;
    co_cell_point *point; /* owned; one per epoch */
} co_cell;

typedef struct co_report {
    const char *config;           /* borrowed; name of the config file */
    const char *machine;          /* borrowed; "AMD EPYC 9354, 2 cores"; or NULL */
    const char *seeds;            /* borrowed; for people: "1, 2, 3"; or NULL */
    const co_metric_set *metrics; /* borrowed; of all cells; NULL: none */
    size_t n_seed; /* cells per strategy and number of ranks; 0: one, with the config's seed */
    size_t n_cell;
    co_cell *cell; /* borrowed; sorted by strategy, then by number of ranks */
} co_report;

/* A cell that was not run, with unknown numbers; borrows the strings. */
void co_cell_init(co_cell *cell, const char *strategy, int ranks, const char *dir);
void co_cell_fini(co_cell *cell);
/* "done", "failed", ... */
const char *co_cell_state_name(co_cell_state state);
/* Read summary.json and metrics.jsonl; sets CO_CELL_DONE. CO_E_DATA names the file at fault. */
co_status co_cell_read(co_cell *cell);

/*
 * For each cell that is done, fill in
 *   speedup    training seconds on one rank / its own, with the same strategy and seed or, if there
 *              is no such cell, "sync"
 *   predicted  R / (1 + T_sync / T_comp): the speedup if computation were divided by R and only
 *              synchronization were added
 */
void co_report_relate(co_report *report);

/* Figures of a cell that are averaged over several seeds. */
typedef enum co_figure {
    CO_FIGURE_TRAIN_SECONDS,
    CO_FIGURE_SAMPLES_PER_SECOND,
    CO_FIGURE_SPEEDUP,
    CO_FIGURE_PREDICTED,
    CO_FIGURE_TEST_ACCURACY,
    CO_FIGURE_TEST_LOSS,
    CO_FIGURE_BYTES_SENT,
    CO_FIGURE_COMPUTE_SECONDS,
    CO_FIGURE_SYNC_SECONDS,
    CO_FIGURE_STEPS,
    CO_FIGURES /* followed by the report's metrics */
} co_figure;

#define CO_REPORT_MAX_SEEDS 64

/* Statistics of n known values; n = 0: all NaN. sd is the standard deviation of a sample (n - 1),
   NaN for n = 1. */
typedef struct co_spread {
    size_t n;
    double mean, sd, min, max;
} co_spread;

/* Number of a report's figures: CO_FIGURES, and one for each metric. */
co_figure co_report_figures(const co_report *report);
/* Its name in summary.json and the tables; returns `out`. */
const char *co_figure_name(char *out, size_t size, const co_report *report, co_figure figure);
double co_figure_of(const co_cell *cell, co_figure figure);
co_spread co_spread_of(const double *value, size_t n);
/* Over the cells [begin, end), one group. */
co_spread co_report_spread(const co_report *report, size_t begin, size_t end, co_figure figure);
/* Index after the group, or the strategy, that begins at `begin`. Cells of a group only differ in
   the seed. */
size_t co_report_group_end(const co_report *report, size_t begin);
size_t co_report_strategy_end(const co_report *report, size_t begin);

/* Print the table for people, a row per group. */
void co_report_print(FILE *out, const co_report *report);
/* Write table.txt, table.csv and table.json to `dir`. */
co_status co_report_write_tables(const char *dir, const co_report *report);
/* Statistics over the seeds of each strategy and number of ranks, an array of objects; NULL: out of
   memory. The caller's. */
json_t *co_report_groups(const co_report *report);
/* Write the page of a comparison: speedup, accuracy, what each strategy costs, and the runs of the
   cells that are done, as in the page of `cohort report`. */
co_status co_report_write_page(const char *path, const co_report *report);

/* File name of the gnuplot script. */
#define CO_REPORT_SCRIPT "plots.gp"
/* Write `dir`/plots.gp. gnuplot, run in `dir`, makes <plot>.png and <plot>.svg from it for each of
   co_report_plots that has figures. */
co_status co_report_write_script(const char *dir, const co_report *report);
/* Names without extensions, NULL-terminated. */
extern const char *const co_report_plots[];

#endif
