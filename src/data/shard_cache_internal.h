/* shard_cache_internal.h - a cache of remote shards: shard_cache_index.c opens it, shard_cache.c
   has its blocks. */
#ifndef CO_DATA_SHARD_CACHE_INTERNAL_H
#define CO_DATA_SHARD_CACHE_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "data/cache_folder.h"
#include "data/shard_ahead.h"
#include "data/shard_cache.h"
#include "fetch/range.h"

#define CO_CACHE_MOST ((uint64_t)4 << 20) /* bytes of a request */

struct co_shard_cache {
    char url[PATH_MAX];
    co_range *range; /* owned */
    co_cache_folder folder;
    const co_shard_index *index;
    _Atomic(uint8_t *) *map; /* owned: (shards) mappings of files, NULL until they are needed */
    pthread_mutex_t lock;    /* of making one */
    atomic_bool warned;
    int prefetch;          /* requests at once for blocks that are expected */
    co_shard_ahead *ahead; /* owned; NULL: nothing is fetched ahead */
    uint64_t *first_block; /* owned, as `ahead`: (shards) number of each one's first among all */
    atomic_bool full;      /* there is no room for more: nothing is fetched ahead any more */
};

/* The address of a file of the set. */
co_status co_shard_cache_address(char out[PATH_MAX], const co_shard_cache *cache, const char *name);

#endif
