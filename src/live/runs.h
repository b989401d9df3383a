/* runs.h - the runs that are watched: a folder's newest ones, read as they grow. */
#ifndef CO_LIVE_RUNS_H
#define CO_LIVE_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <cohort/status.h>

#include "live/measure.h"
#include "live/ranks.h"
#include "report/page.h"
#include "report/run_list.h"

#define CO_LIVE_RUNS   12   /* at once: those with the latest events */
#define CO_LIVE_POINTS 4000 /* of a curve; twice as many before some are left out */

typedef struct co_live_run {
    co_page_source *source; /* owned */
    co_ranks ranks;
    co_measured measured;
    char damage[512];                    /* what of its files could not be read; "": nothing */
    bool is_new, has_ranks, is_measured; /* is_measured: and the page does not know it */
} co_live_run;

typedef struct co_live_runs {
    const char *const *folder; /* borrowed: (n_folder) */
    size_t n_folder;
    co_live_run *run[CO_LIVE_RUNS]; /* owned, sorted by name */
    size_t n;
    uint64_t scan_ns; /* look for others from then on */
} co_live_runs;

/* Folders that are there; they need not have runs yet, and runs may be damaged. */
co_status co_live_runs_open(co_live_runs *runs, const char *const *folder, size_t n);
void co_live_runs_close(co_live_runs *runs);
/* Read what is new. *message: {"runs": [{"run": i, ...}]} for the page, or null; the caller's.
 *all: the page has to ask for everything. */
co_status co_live_runs_update(co_live_runs *runs, json_t **message, bool *all);
/* Ask those that are running what their ranks are doing. */
void co_live_runs_ask(co_live_runs *runs);
/* Measure the weights of a run that has new ones; one run after another. */
co_status co_live_runs_measure(co_live_runs *runs, const co_live_measure *how);
/* All there is, for the page: an array; the caller's. */
co_status co_live_runs_json(json_t **out, const co_live_runs *runs);

#endif
