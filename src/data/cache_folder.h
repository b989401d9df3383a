/*
 * cache_folder.h - a folder that keeps what has been fetched, of limited size and for its owner
 * alone. It has a folder for each set; one that no process uses goes when room is needed.
 */
#ifndef CO_DATA_CACHE_FOLDER_H
#define CO_DATA_CACHE_FOLDER_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cohort/status.h>

#define CO_CACHE_ID 33 /* 32 hex digits and a NUL */

/* Zero is closed. */
typedef struct co_cache_folder {
    char root[PATH_MAX]; /* of all sets */
    char path[PATH_MAX]; /* of this one */
    int lock;            /* owned: held as long as the set is in use, by forked processes too */
    atomic_uint_least64_t *used; /* owned mapping, shared by all processes: bytes of all sets */
    uint64_t limit;
} co_cache_folder;

/* The folder of set `id`. `root` NULL: $XDG_CACHE_HOME/cohort/shards, by default
   ~/.cache/cohort/shards. CO_E_USAGE: it belongs to another user or others may read it; CO_E_IO: it
   cannot be made. */
co_status co_cache_folder_open(co_cache_folder *out, const char *root, const char id[CO_CACHE_ID],
                               uint64_t limit);
/* Count what is kept, and remove sets that no process uses, the one first that has not been used
   for longest, until `wanted` bytes fit beside the rest or no more can go. */
co_status co_cache_folder_make_room(co_cache_folder *folder, uint64_t wanted);
/* Whether n more bytes may be kept. Thread-safe, over all processes. */
bool co_cache_folder_reserve(const co_cache_folder *folder, uint64_t n);
void co_cache_folder_release(const co_cache_folder *folder, uint64_t n);
void co_cache_folder_close(co_cache_folder *folder);

#endif
