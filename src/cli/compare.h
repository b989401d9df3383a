/*
 * compare.h - what the files of `cohort compare` share.
 *
 * A comparison is a folder: a run directory for each cell (a strategy on a number of ranks, with a
 * seed), the tables and the plots.
 */
#ifndef CO_CLI_COMPARE_H
#define CO_CLI_COMPARE_H

#include "cli/cli.h"
#include "launch/child.h"
#include "report/report.h"

typedef struct compare_options {
    const char *strategies, *ranks, *seeds, *out;
    int64_t limit_seconds;
    cli_list set, plugins;
    bool resume, quiet;
} compare_options;

/* What is to be run, or has been. */
typedef struct compare_plan {
    co_config *config; /* owned: its arena holds all texts and cells */
    const char *path;  /* borrowed: the config to train */
    bool made;         /* the folder, under a name of the program's own */
    const cli_list *set, *plugins;
    const char *dir;       /* of the comparison */
    const char **strategy; /* (cells) "strategy=...": what makes the cell different, for --set */
    const char **seed;     /* (cells) "seed=..."; NULL: the config's */
    co_metric_set metrics; /* that the config asks for */
    co_report report;
} compare_plan;

/* In the run directory of a cell: what it printed. */
#define COMPARE_LOG "log.txt"

/* --- compare_plan.c --- */

/* Strategies, ranks and the config are checked as far as can be before a rank starts. */
co_status compare_plan_open(compare_plan *out, const char *path, const compare_options *options);
void compare_plan_close(compare_plan *plan);
/* What an earlier comparison has left in the folder: `resume` takes over its finished cells and
   refuses those of another config, without it there must be none. */
co_status compare_plan_take_over(compare_plan *plan, bool resume);
/* Remove what an unfinished cell has left. */
co_status compare_plan_clear(const co_cell *cell);

/* --- compare_run.c --- */

/* Run the cells that wait. A cell that fails says why and is no failure of this. The status of a
   signal: the cell under way is CO_CELL_STOPPED. */
co_status compare_run_cells(compare_plan *plan, const co_child_guard *guard,
                            const compare_options *options);

#endif
