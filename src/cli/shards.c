/* shards.c - writes a folder of shards beside its place, and renames it when it is complete. */
#include "cli/shards.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"

static co_status shards_staging(char out[CLI_MAX_PATH], const char *target)
{
    size_t n = strlen(target);

    while (n > 1 && target[n - 1] == '/')
        n--;
    if (n + sizeof(".part") > CLI_MAX_PATH || n == 0)
        return co_fail(CO_E_USAGE, "%s: the path is too long, or empty", target);
    snprintf(out, CLI_MAX_PATH, "%.*s.part", (int)n, target);
    return CO_OK;
}

co_status cli_shards_check(const char *target)
{
    char staging[CLI_MAX_PATH];

    if (co_fs_exists(target))
        return co_fail(CO_E_USAGE, "%s: is there; give another folder", target);
    return shards_staging(staging, target);
}

static co_status shards_split(cli_shards *s, const char *staging, co_split split)
{
    const char *name = split == CO_SPLIT_TRAIN ? "train" : "val";
    char folder[CLI_MAX_PATH + 8];
    co_shard_writing writing = {.data = s->data[split],
                                .folder = folder,
                                .prefix = name,
                                .shards = s->shards,
                                .packed = s->packed,
                                .split = split,
                                .options = s->options,
                                .tick = s->tick,
                                .arg = s->arg};

    snprintf(folder, sizeof(folder), "%s/%s", staging, name);
    if (mkdir(folder, 0777) != 0)
        return co_fail(CO_E_IO, "%s: cannot make the folder: %s", folder, strerror(errno));
    CO_TRY(co_shard_write(&writing));
    s->bytes_in += writing.bytes_in;
    s->bytes_out += writing.bytes_out;
    return CO_OK;
}

co_status cli_shards_write(cli_shards *s)
{
    char staging[CLI_MAX_PATH];
    co_status st = CO_OK;

    CO_TRY(shards_staging(staging, s->target));
    if (mkdir(staging, 0777) != 0 && errno == EEXIST)
        return co_fail(CO_E_USAGE,
                       "%s: is there: another command is writing it, or one was killed; remove it",
                       staging);
    if (!co_fs_exists(staging))
        return co_fail(CO_E_IO, "%s: cannot make the folder: %s", staging, strerror(errno));
    for (int k = CO_SPLIT_TRAIN; k <= CO_SPLIT_TEST && st == CO_OK; k++)
        if (s->data[k])
            st = shards_split(s, staging, (co_split)k);
    if (st == CO_OK && rename(staging, s->target) != 0)
        st = co_fail(CO_E_IO, "%s: %s", s->target, strerror(errno));
    if (st != CO_OK)
        co_fs_remove_folder(staging);
    return st;
}
