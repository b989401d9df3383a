/* transfer.h - one file from an address, by libcurl; internal to src/fetch. */
#ifndef CO_FETCH_TRANSFER_H
#define CO_FETCH_TRANSFER_H

#include "fetch/get.h"

typedef struct co_transfer {
    const char *url;
    const char *path; /* written here: from its end on if it is there, else new */
    uint64_t max;     /* bytes at most */
    const co_get_progress *progress;
} co_transfer;

/* CO_E_DATA names the address and why: nothing is said of what `path` holds then. CO_E_UNSUPPORTED:
   libcurl is not on this machine. Errors of progress->tick end it. `again`: the connection broke,
   and the rest may be had by another call. */
co_status co_transfer_run(bool *again, const co_transfer *transfer);

#endif
