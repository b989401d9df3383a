/* shard_split.c - finds the folder of a split, and opens it. */
#include "data/shard_split.h"

#include <stdio.h>
#include <sys/stat.h>

#include "data/shard_pattern.h"
#include "fetch/range.h"

static bool split_is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool co_shard_split_is_there(const co_shard_source *source, const char *name)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s/%s", source->path, name) < PATH_MAX &&
           split_is_folder(path);
}

static co_status split_find(const char **out, const co_shard_keys *keys,
                            const co_shard_source *source, co_split split)
{
    if (!split_is_folder(source->path))
        return co_fail(CO_E_DATA, "%s: no such folder; set data.path", source->path);
    *out = split == CO_SPLIT_TRAIN ? keys->train : keys->test;
    if (*out && (co_shard_pattern_is(*out) || co_shard_split_is_there(source, *out)))
        return CO_OK;
    if (*out)
        return co_fail(CO_E_DATA, "%s/%s: no such folder; name it with data.%s", source->path, *out,
                       split == CO_SPLIT_TRAIN ? "train" : "test");
    *out = co_shard_split_is_there(source, "val") ? "val" : "test";
    if (co_shard_split_is_there(source, *out))
        return CO_OK;
    return co_fail(CO_E_DATA, "%s: holds neither val nor test; name the folder with data.test",
                   source->path);
}

co_status co_shard_split_open(co_shard_set *out, const co_shard_keys *keys,
                              const co_shard_source *source, co_split split)
{
    co_shard_set_options options = {.path = source->path,
                                    .packed = source->packed,
                                    .label = source->label,
                                    .cache = keys->cache,
                                    .limit = (uint64_t)keys->cache_limit << 30,
                                    .retry_s = (double)keys->retry,
                                    .prefetch = (int)keys->prefetch};
    co_status st;

    if (!co_range_is_address(source->path)) {
        CO_TRY(split_find(&options.split, keys, source, split));
        return co_shard_set_open(out, &options);
    }
    options.split = split == CO_SPLIT_TRAIN ? keys->train : keys->test ? keys->test : "val";
    st = co_shard_set_open(out, &options);
    if (st == CO_OK || split == CO_SPLIT_TRAIN || keys->test || !out->missing)
        return st;
    co_shard_set_close(out);
    options.split = "test";
    return co_shard_set_open(out, &options);
}
