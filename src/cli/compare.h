/*
 * compare.h - shared by the files of `cohort compare`.
 *
 * A comparison is a folder with a run directory for each cell (a strategy on a number of ranks,
 * with a seed), tables and plots.
 */
#ifndef CO_CLI_COMPARE_H
#define CO_CLI_COMPARE_H

#include "cli/cli.h"
#include "launch/child.h"
#include "report/report.h"

typedef struct compare_options {
    const char *strategies, *ranks, *seeds, *out;
    int64_t limit_seconds;
    int64_t cell; /* only this one, counted from 1; 0: all */
    cli_list set, plugins;
    bool resume, quiet;
} compare_options;

/* A comparison: its cells and their results. */
typedef struct compare_plan {
    co_config *config; /* owned: its arena holds all texts and cells */
    const char *path;  /* borrowed: config to train */
    bool made;         /* the folder was created under a generated name */
    const cli_list *set, *plugins;
    const char *dir;       /* of the comparison */
    const char **strategy; /* (cells) "strategy=..." for --set */
    const char **seed;     /* (cells) "seed=..."; NULL: use the config's */
    co_metric_set metrics; /* metrics of the config */
    co_report report;
} compare_plan;

/* Output of a cell, in its run directory. */
#define COMPARE_LOG "log.txt"

/* --- compare_plan.c --- */

/* Checks strategies, ranks and the config as far as possible without starting a rank. */
co_status compare_plan_open(compare_plan *out, const char *path, const compare_options *options);
void compare_plan_close(compare_plan *plan);
/* Look for earlier results in the folder. With `resume`, keep finished cells (an error if their
   config differs); without it, an error if there are any. */
co_status compare_plan_take_over(compare_plan *plan, bool resume);
/* Remove what an unfinished cell left. */
co_status compare_plan_clear(const co_cell *cell);

/* --- compare_run.c --- */

/* Run the waiting cells, or the one of options->cell. A cell that fails records why, and the others
   still run. After a signal, returns its status and marks the running cell CO_CELL_STOPPED. */
co_status compare_run_cells(compare_plan *plan, const co_child_guard *guard,
                            const compare_options *options);

#endif
