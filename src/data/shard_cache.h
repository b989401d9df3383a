/*
 * shard_cache.h - shards of a web server: what is read of them is fetched by range requests and
 * kept in a folder, in blocks, for all processes of a host.
 */
#ifndef CO_DATA_SHARD_CACHE_H
#define CO_DATA_SHARD_CACHE_H

#include <cohort/ext/dataset.h>

#include "data/shard_index.h"

typedef struct co_shard_cache co_shard_cache;

typedef struct co_shard_cache_options {
    const char *url;    /* of the folder of the shards, without a slash at its end */
    const char *folder; /* that keeps them; NULL: the user's */
    uint64_t limit;     /* bytes of all sets that are kept there */
    double retry_s;     /* how long a request that fails is repeated */
    int prefetch;       /* requests at once for samples that are expected; 0: none */
} co_shard_cache_options;

/* Fetch the index of the shards, or find it where it is kept. `bytes` is the caller's, with
   co_free. `missing`: it failed as the server has none. CO_E_DATA or CO_E_IO, naming the address.
 */
co_status co_shard_cache_open(co_shard_cache **out, uint8_t **bytes, size_t *size, bool *missing,
                              const co_shard_cache_options *options);
/* Before the first read; `index`, of these bytes, must outlive the cache. */
co_status co_shard_cache_start(co_shard_cache *cache, const co_shard_index *index);
/* The bytes of a sample, kept or fetched; in place, or in `buffer`. Thread-safe. `again`: what is
   kept of it is damaged, it is fetched. CO_E_IO names the address. */
co_status co_shard_cache_read(co_bytes *out, co_shard_cache *cache, co_buffer *buffer,
                              const co_shard_entry *entry, bool again);
/* As co_shard_set_expect. */
bool co_shard_cache_expect(co_shard_cache *cache, const uint32_t *sample, uint64_t n);
void co_shard_cache_close(co_shard_cache *cache);

#endif
