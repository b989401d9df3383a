/*
 * append.h - a file of the run directory to which whole records are appended.
 */
#ifndef CO_TELEMETRY_APPEND_H
#define CO_TELEMETRY_APPEND_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>

typedef struct co_append {
    char *path; /* owned, for messages; NULL if never opened */
    int fd;     /* owned */
} co_append;

/* Open dir/name, creating it if needed; with `fresh` it must not exist. Close `out` after a
   failure, too. */
co_status co_append_open(co_append *out, const char *dir, const char *name, bool fresh);
/* Append in one write: a crash keeps all earlier records, and a concurrent reader sees no partial
   one. If it fails, as on a full disk, the file is truncated to its former size. */
co_status co_append_record(const co_append *file, const void *bytes, size_t size);
void co_append_close(co_append *file);

#endif
