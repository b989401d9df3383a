/*
 * pack.c - data set "pack": packed files, which are mapped; records are used in place.
 *
 * One file has both splits. A folder, local or of a web server, has them in shards: packed files
 * beside an index, as the tar files of data set "tar" are.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "data/formats.h"
#include "data/pack_format.h"
#include "data/shard_split.h"
#include "fetch/range.h"

typedef struct pack {
    co_shard_keys keys;
    /* set by open */
    bool sharded; /* `shards` has the samples; else `file` */
    co_shard_set shards;
    co_pack file;
    co_split split;
} pack;

static const co_key pack_keys[] = {
    CO_SHARD_KEY_ROWS(offsetof(pack, keys),
                      "folder below path with the shards of the training split"),
    CO_KEYS_END,
};

static bool pack_is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static co_status pack_open_file(pack *self, co_dataset_info *info, const char *path, co_split split)
{
    const co_pack_head *head = &self->file.head;

    if (self->keys.test || strcmp(self->keys.train, "train") != 0)
        return co_fail(CO_E_USAGE,
                       "data pack: train and test are folders of shards; %s is one file", path);
    CO_TRY(co_pack_open(&self->file, path));
    self->split = split;
    if (head->count[split] == 0) {
        co_pack_close(&self->file);
        return co_fail(CO_E_DATA, "%s: holds no %s split; pack it with both", path,
                       split == CO_SPLIT_TRAIN ? "training" : "test");
    }
    info->count = head->count[split];
    info->encoded = head->encoded;
    info->shape = (co_shape){3, {head->channels, head->height, head->width}};
    info->classes = head->classes;
    return CO_OK;
}

static co_status pack_open(void *state, co_dataset_info *info, const char *path, co_split split)
{
    pack *self = state;
    const co_shard_source source = {.path = path, .packed = true};
    const co_shard_index *index = &self->shards.index;
    co_status st;

    if (!path)
        return co_fail(CO_E_USAGE,
                       "data pack: set data.path, the file or the folder of shards that "
                       "`cohort data pack` wrote, or its address");
    self->sharded = co_range_is_address(path) || pack_is_folder(path);
    if (!self->sharded)
        return pack_open_file(self, info, path, split);
    st = co_shard_split_open(&self->shards, &self->keys, &source, split);
    if (st != CO_OK) {
        co_shard_set_close(&self->shards);
        return st;
    }
    info->count = index->samples;
    info->encoded = index->records.encoded;
    info->shape =
        (co_shape){3, {index->records.channels, index->records.height, index->records.width}};
    info->classes = index->classes;
    return CO_OK;
}

static co_status pack_read(const void *state, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    const pack *self = state;

    if (self->sharded)
        return co_shard_set_read(out, &self->shards, buffer, i);
    return co_pack_record(out, &self->file, self->split, i);
}

static bool pack_expect(const void *state, const uint32_t *sample, uint64_t n)
{
    const pack *self = state;

    return self->sharded && co_shard_set_expect(&self->shards, sample, n);
}

static int32_t pack_label(const void *state, uint64_t i)
{
    const pack *self = state;

    if (self->sharded)
        return (int32_t)co_shard_index_entry(&self->shards.index, i).label;
    return (int32_t)co_pack_entry_at(&self->file, self->split, i).label;
}

static void pack_sample_name(const void *state, char *out, size_t size, uint64_t i)
{
    const pack *self = state;

    if (self->sharded)
        co_shard_set_sample_name(&self->shards, out, size, i);
    else
        snprintf(out, size, "sample %llu of %s", (unsigned long long)i, self->file.name);
}

static const char *pack_class_name(const void *state, int32_t label)
{
    const pack *self = state;

    if (self->sharded)
        return co_shard_index_class_name(&self->shards.index, label);
    return self->file.class_name ? self->file.class_name[label] : NULL;
}

static void pack_close(void *state)
{
    pack *self = state;

    co_shard_set_close(&self->shards);
    co_pack_close(&self->file);
}

const co_dataset_ops co_dataset_pack = {
    .name = "pack",
    .summary = "what `cohort data pack` made of another data set; path is the file, or the folder "
               "of shards or its address",
    .keys = pack_keys,
    .self_size = sizeof(pack),
    .open = pack_open,
    .read = pack_read,
    .label = pack_label,
    .sample_name = pack_sample_name,
    .class_name = pack_class_name,
    .close = pack_close,
    .expect = pack_expect,
};
