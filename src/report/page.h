/* page.h - runs as one HTML file that needs nothing else: what `cohort report` writes. */
#ifndef CO_REPORT_PAGE_H
#define CO_REPORT_PAGE_H

#include <jansson.h>

#include <cohort/status.h>

/* Points of a curve that the page has at most; of more, those with the lowest and the highest loss
   of each span. */
#define CO_PAGE_MAX_POINTS 10000

/* What a run directory holds, as the page's script reads it; the caller's. CO_E_DATA: it is no run
   directory, or a file of it is damaged. */
co_status co_page_run(json_t **out, const char *dir);
/* Write the page of an array of such runs. `machine` may be NULL. */
co_status co_page_write(const char *path, const json_t *runs, const char *machine);

#endif
