/*
 * append.h - a file of the run directory that grows by whole records.
 */
#ifndef CO_TELEMETRY_APPEND_H
#define CO_TELEMETRY_APPEND_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>

typedef struct co_append {
    char *path; /* owned, for messages; NULL: never opened */
    int fd;     /* owned */
} co_append;

/* Open dir/name, made where it is not there; `fresh`: it must not be there. `out` is to be closed
   whatever this returns. */
co_status co_append_open(co_append *out, const char *dir, const char *name, bool fresh);
/* One write after all that is there, so that a crash keeps every record before it, and who
   follows the file sees none by halves; a full disk takes back what did not fit. */
co_status co_append_record(const co_append *file, const void *bytes, size_t size);
void co_append_close(co_append *file);

#endif
