/* page_parts.h - the files of src/report/page, as text in the program. */
#ifndef CO_REPORT_PAGE_PARTS_H
#define CO_REPORT_PAGE_PARTS_H

#include <stddef.h>

typedef struct co_page_part {
    const char *name, *text;
} co_page_part;

/* Ended by one without a name. */
extern const co_page_part co_page_parts[];

#endif
