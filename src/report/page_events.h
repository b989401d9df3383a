/* page_events.h - metrics.jsonl for the page, read as it grows. */
#ifndef CO_REPORT_PAGE_EVENTS_H
#define CO_REPORT_PAGE_EVENTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "report/page_table.h"

#define CO_PAGE_MAX_EVENTS 1000 /* that are listed: starts, checkpoints */
#define CO_PAGE_MARK       64
#define CO_PAGE_LOSS       2 /* column of steps by which rows are chosen */

typedef struct co_page_events {
    co_page_table steps, epochs;
    size_t points;       /* step events so far, those that were left out with them */
    size_t most;         /* rows of a table: past twice as many, some are left out; 0: never */
    unsigned generation; /* changes when rows that were there are not any more */
    json_t *list;        /* owned: array of {event, step, text} */
    json_t *start;       /* owned: the latest start of ranks; NULL: none */
    json_t *first;       /* owned: the first one */
    json_t *latest;      /* owned: the last step, epoch or end */
    /* Where reading has come to. The mark is what the file has before that place. */
    dev_t device;
    ino_t inode;
    off_t at;
    size_t line, n_mark;
    char mark[CO_PAGE_MARK];
} co_page_events;

co_status co_page_events_init(co_page_events *events, size_t most);
void co_page_events_free(co_page_events *events);
/* Read what `dir`/metrics.jsonl has beyond what was read; all of it again, with another generation,
   if it is another file: a run that resumes writes its last events anew. No file is no event.
   `whole`: the last line counts without its line end. CO_E_DATA names the line that is damaged. */
co_status co_page_events_read(co_page_events *events, const char *dir, bool whole);
/* Append {event, step, text} to a list, unless it is full. `step` may be NULL. */
co_status co_page_events_add(json_t *list, const char *kind, json_t *step, const char *text);

#endif
