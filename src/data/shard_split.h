/* shard_split.h - the splits of a data set in shards, of a folder or of a web server, and the keys
   that such data sets have. */
#ifndef CO_DATA_SHARD_SPLIT_H
#define CO_DATA_SHARD_SPLIT_H

#include "data/shard_set.h"

#define CO_SHARD_MAX_PREFETCH 64

typedef struct co_shard_keys {
    const char *train, *test; /* test: NULL for val, or else test */
    const char *cache;
    int64_t cache_limit, retry, prefetch; /* GiB; seconds; requests */
} co_shard_keys;

#define CO_SHARD_KEY(at, name, key, type, text, min, max, help)                                    \
    {                                                                                              \
        name, type, (at) + offsetof(co_shard_keys, key), text, min, max, NULL, help                \
    }
/* Rows of a table of keys; `at`: of the struct. `train_help`: of a folder, and what else there may
   be. */
#define CO_SHARD_KEY_ROWS(at, train_help)                                                          \
    CO_SHARD_KEY(at, "train", train, CO_KEY_STRING, "train", 0, 0, train_help),                    \
        CO_SHARD_KEY(at, "test", test, CO_KEY_STRING, "~", 0, 0,                                   \
                     "the same of the test split; default: val, or else test"),                    \
        CO_SHARD_KEY(at, "cache", cache, CO_KEY_STRING, "~", 0, 0,                                 \
                     "folder for what is fetched, where path is an address; default: "             \
                     "~/.cache/cohort/shards"),                                                    \
        CO_SHARD_KEY(at, "cache_limit", cache_limit, CO_KEY_INT, "64", 1, 1 << 20,                 \
                     "GiB that it keeps of all sets; what does not fit is fetched each time"),     \
        CO_SHARD_KEY(at, "retry", retry, CO_KEY_INT, "120", 0, 86400,                              \
                     "seconds for which a request that fails is repeated, later and later"),       \
        CO_SHARD_KEY(at, "prefetch", prefetch, CO_KEY_INT, "8", 0, CO_SHARD_MAX_PREFETCH,          \
                     "requests at once, of each rank, for batches to come; 0: none")

typedef struct co_shard_source {
    const char *path;
    const char *label; /* of tar files: the member of KEY.json that has the class */
    bool packed;       /* shards are packed files; else tar files */
} co_shard_source;

/* Whether a split's folder is there, below a local path. */
bool co_shard_split_is_there(const co_shard_source *source, const char *name);
/* As co_shard_set_open. Close `out` in any case. */
co_status co_shard_split_open(co_shard_set *out, const co_shard_keys *keys,
                              const co_shard_source *source, co_split split);

#endif
