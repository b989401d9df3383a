/* page.h - runs as one HTML file that needs nothing else: what `cohort report` writes. */
#ifndef CO_REPORT_PAGE_H
#define CO_REPORT_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <cohort/status.h>

#include "report/page_table.h"
#include "report/run_list.h"

/* Points of a curve that the page has at most; of more, those with the lowest and the highest loss
   of each span. */
#define CO_PAGE_MAX_POINTS 10000

/* What a run directory holds, as the page's script reads it, with at most so many points of a
   curve; the caller's. CO_E_DATA: it is no run directory, or a file of it is damaged. */
co_status co_page_run(json_t **out, const char *dir, size_t most);
/* Write the page of an array of such runs. `machine` may be NULL; `compare`: how they compare, for
   the page of a comparison, or NULL. */
co_status co_page_write(const char *path, json_t *runs, const char *machine, json_t *compare);

/* A run directory that is read again and again, each time what is new of it; `most`: points of a
   curve. */
typedef struct co_page_source co_page_source;
co_status co_page_source_open(co_page_source **out, const char *dir, size_t most);
void co_page_source_close(co_page_source *source);
const char *co_page_source_dir(const co_page_source *source);
/* Whether an update has found the run: there is something to show, even if that update has failed.
 */
bool co_page_source_is_read(const co_page_source *source);
/* As of the last update. */
co_run_state co_page_source_state(const co_page_source *source);
/* What there is to say of it in a line; NaN: unknown. Texts are borrowed until the next update. */
typedef struct co_page_figures {
    const char *model, *dataset, *strategy;
    double ranks, steps, total_steps, batch, rate, test_accuracy, test_loss;
    co_run_state state;
} co_page_figures;
co_page_figures co_page_source_figures(const co_page_source *source);
/* A curve, by the name that events have for it: that column of the steps, or of the epochs where
   steps make no line, as in a run of fewer steps than `log_every`. NULL: no event has it. Borrowed
   until then. */
const co_page_table *co_page_source_curve(size_t *column, const co_page_source *source,
                                          const char *name);
/* On failure what was read before is still there. */
co_status co_page_source_update(co_page_source *source);
/* All of it, as by co_page_run; the caller's. */
co_status co_page_source_json(json_t **out, const co_page_source *source);
/* What the last update has found: an object of members that have changed, `append` with the new
   rows of its tables among them, or null; the caller's. *all: rows have gone, so that only
   co_page_source_json has what there is. */
co_status co_page_source_news(json_t **out, bool *all, co_page_source *source);

/* Where the numbers of a page come from that a server keeps up to date. */
typedef struct co_page_live {
    const char *folder; /* that is watched, for people */
    uint64_t after;     /* number of the last message whose contents the page has */
} co_page_live;

/* The JSON in such a page. */
co_status co_page_live_json(json_t **out, json_t *runs, const co_page_live *live);
/* The page of such JSON. CO_E_NOMEM if the stream has failed. */
co_status co_page_put_live(FILE *out, const json_t *data);

#endif
