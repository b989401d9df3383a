/* put.h - all of some bytes to a file; internal to src/fetch. */
#ifndef CO_FETCH_PUT_H
#define CO_FETCH_PUT_H

#include <stddef.h>

#include <cohort/status.h>

/* CO_E_IO names `path`. */
co_status co_fetch_put(int fd, const void *bytes, size_t n, const char *path);

#endif
