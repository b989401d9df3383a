/* page_table.h - metrics.jsonl as columns, for page_run.c. */
#ifndef CO_REPORT_PAGE_TABLE_H
#define CO_REPORT_PAGE_TABLE_H

#include <stdbool.h>

#include <jansson.h>

#include <cohort/status.h>

typedef struct co_page_table {
    const char *const *name; /* of columns, NULL-ended: keys of events; the first is the step */
    double *value;           /* owned: (rows, columns); NaN: not there */
    size_t rows, room, columns;
} co_page_table;

void co_page_table_init(co_page_table *table, const char *const *name);
/* The numbers of an event. */
co_status co_page_table_add(co_page_table *table, const json_t *event);
/* At most `most` rows: of each span those in which column `by` is lowest and highest. */
void co_page_table_thin(co_page_table *table, size_t most, size_t by);
/* The same, where the spans have equally many steps instead of rows: done again and again as rows
   are added, early steps keep as many as late ones. */
void co_page_table_thin_even(co_page_table *table, size_t most, size_t by);
/* {"step": [...], ...} of the rows from `first` on, without columns that have no number; NULL: out
   of memory. */
json_t *co_page_table_json(const co_page_table *table, size_t first);
/* How many numbers a column has. */
size_t co_page_table_count(const co_page_table *table, size_t column);
/* The column of this name; `columns`: there is none. */
size_t co_page_table_find(const co_page_table *table, const char *name);
void co_page_table_free(co_page_table *table);

#endif
