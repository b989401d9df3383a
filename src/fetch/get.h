/* get.h - fetch a data set: its files downloaded, checked, unpacked, and there as a whole or not at
   all. */
#ifndef CO_FETCH_GET_H
#define CO_FETCH_GET_H

#include <cohort/status.h>

#include "fetch/catalog.h"

/* What is under way, for people. */
typedef struct co_get_progress {
    /* Called often; an error ends the work. `total` 0: not known. */
    co_status (*tick)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *arg;
} co_get_progress;

typedef struct co_get_options {
    const co_catalog_set *set;
    const char *folder; /* of the set; it must not exist, its parent is made */
    const char *from;   /* a folder, or an address, that has the files; NULL: the set's mirrors */
    co_get_progress progress;
} co_get_options;

/* Work is done in `folder`.part, which an interrupt leaves, for the next call to continue; every
   other failure removes it. CO_E_DATA names each mirror and what was wrong with it. */
co_status co_get(const co_get_options *options);

#endif
