/* shard_set.h - a split of a data set in shards: its index, and the bytes of a sample. */
#ifndef CO_DATA_SHARD_SET_H
#define CO_DATA_SHARD_SET_H

#include <limits.h>
#include <stdatomic.h>

#include <cohort/ext/dataset.h>

#include "data/shard_files.h"
#include "data/shard_index.h"

typedef struct co_shard_set_options {
    const char *path;  /* folder that the splits are in, or its address: http://, https:// */
    const char *split; /* folder below it, or of tar files a pattern of shards below it */
    bool packed;       /* shards are packed files; else tar files */
    const char *label; /* of tar files: the member of KEY.json that has the class */
    const char *cache; /* folder that keeps what is fetched; NULL: the user's */
    uint64_t limit;    /* bytes that it keeps of all sets */
    double retry_s;    /* how long a request that fails is repeated */
    int prefetch;      /* requests at once for samples that are expected; 0: none */
} co_shard_set_options;

/* Zero is closed. */
typedef struct co_shard_set {
    char root[PATH_MAX];  /* folder of the shards, or its address */
    uint8_t *index_bytes; /* owned */
    co_shard_index index;
    bool walked; /* there was no file of the index: shards were read to make one */
    co_shard_files files;
    struct co_shard_cache *cache;    /* owned; NULL: `files` has the shards */
    atomic_uint_least32_t *verified; /* owned, of packed files: a bit per sample whose checksum was
                                        right */
    bool missing;                    /* on failure: there is no such folder on the server */
} co_shard_set;

/* CO_E_DATA names the shard that is missing, damaged, or not as the index says; CO_E_USAGE a
   pattern that is none. Close `out` in any case. */
co_status co_shard_set_open(co_shard_set *out, const co_shard_set_options *options);
/* The bytes of sample i, in `buffer` or in place; thread-safe. CO_E_DATA: its checksum is wrong;
   CO_E_IO: its shard is missing now or was changed, or the server does not give it. A sample of
   packed files is checked when it is read first. */
co_status co_shard_set_read(co_bytes *out, const co_shard_set *shards, co_buffer *buffer,
                            uint64_t i);
/* These samples will be read soon, in this order: what of them is not in the cache is fetched
   meanwhile. Thread-safe. n = 0: none are expected any more, and nothing is being fetched when it
   returns. False: there is nothing to fetch, now or later. */
bool co_shard_set_expect(const co_shard_set *shards, const uint32_t *sample, uint64_t n);
/* "FOLDER/SHARD: NAME" */
void co_shard_set_sample_name(const co_shard_set *shards, char *out, size_t size, uint64_t i);
void co_shard_set_close(co_shard_set *shards);

#endif
