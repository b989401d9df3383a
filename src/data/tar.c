/*
 * tar.c - data set "tar": images in sharded tar files, as WebDataset names them.
 *
 * A sample is found by the index of its split, so any order is possible: that of a folder of the
 * same images. Does not decode images.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "data/formats.h"
#include "data/shard_pattern.h"
#include "data/shard_set.h"
#include "fetch/range.h"

typedef struct tar {
    int64_t channels;
    const char *train, *test; /* test: NULL for val, or else test */
    const char *label, *cache;
    int64_t cache_limit, retry; /* GiB; seconds */
    /* set by open */
    co_shard_set shards;
    int64_t classes;
} tar;

#define TAR(field) offsetof(tar, field)

static const co_key tar_keys[] = {
    {"channels", CO_KEY_INT, TAR(channels), "3", 1, 3, NULL,
     "3: colour, 1: grey; images are converted"},
    {"train", CO_KEY_STRING, TAR(train), "train", 0, 0, NULL,
     "folder below path with the shards of the training split, or a range: train-{0000..0127}.tar"},
    {"test", CO_KEY_STRING, TAR(test), "~", 0, 0, NULL,
     "the same of the test split; default: val, or else test"},
    {"label", CO_KEY_STRING, TAR(label), "label", 0, 0, NULL,
     "the number in KEY.json that is the class, in shards without KEY.cls"},
    {"cache", CO_KEY_STRING, TAR(cache), "~", 0, 0, NULL,
     "folder for what is fetched, where path is an address; default: ~/.cache/cohort/shards"},
    {"cache_limit", CO_KEY_INT, TAR(cache_limit), "64", 1, 1 << 20, NULL,
     "GiB that it keeps of all sets; what does not fit is fetched each time"},
    {"retry", CO_KEY_INT, TAR(retry), "120", 0, 86400, NULL,
     "seconds for which a request that fails is repeated, later and later"},
    CO_KEYS_END,
};

static bool tar_is_folder(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat info;

    return snprintf(path, sizeof(path), "%s/%s", folder, name) < PATH_MAX &&
           stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static co_status tar_find_split(const char **out, const tar *self, const char *path, co_split split)
{
    *out = split == CO_SPLIT_TRAIN ? self->train : self->test;
    if (*out && (co_shard_pattern_is(*out) || tar_is_folder(path, *out)))
        return CO_OK;
    if (*out)
        return co_fail(CO_E_DATA, "%s/%s: no such folder; name it with data.%s", path, *out,
                       split == CO_SPLIT_TRAIN ? "train" : "test");
    *out = tar_is_folder(path, "val") ? "val" : "test";
    if (tar_is_folder(path, *out))
        return CO_OK;
    return co_fail(CO_E_DATA, "%s: holds neither val nor test; name the folder with data.test",
                   path);
}

static co_status tar_open_split(co_shard_set *out, const tar *self, const char *path,
                                co_split split)
{
    co_shard_set_options options = {.path = path,
                                    .label = self->label,
                                    .cache = self->cache,
                                    .limit = (uint64_t)self->cache_limit << 30,
                                    .retry_s = (double)self->retry};
    co_status st;

    if (!co_range_is_address(path)) {
        CO_TRY(tar_find_split(&options.split, self, path, split));
        return co_shard_set_open(out, &options);
    }
    options.split = split == CO_SPLIT_TRAIN ? self->train : self->test ? self->test : "val";
    st = co_shard_set_open(out, &options);
    if (st == CO_OK || split == CO_SPLIT_TRAIN || self->test || !out->missing)
        return st;
    co_shard_set_close(out);
    options.split = "test";
    return co_shard_set_open(out, &options);
}

/* Without an index the classes are those of the training split, as many as its highest label
   needs: the test split may lack some. */
static co_status tar_count_classes(tar *self, const char *path, co_split split)
{
    co_shard_set train = {.walked = false};
    co_status st;

    self->classes = self->shards.index.classes;
    if (split == CO_SPLIT_TRAIN || !self->shards.walked)
        return CO_OK;
    if (!co_shard_pattern_is(self->train) && !tar_is_folder(path, self->train))
        return CO_OK;
    st = tar_open_split(&train, self, path, CO_SPLIT_TRAIN);
    if (st == CO_OK && train.index.classes < self->classes)
        st = co_fail(
            CO_E_DATA, "%s: has a sample of class %lld; those of the training split are 0 to %lld",
            self->shards.root, (long long)self->classes - 1, (long long)train.index.classes - 1);
    if (st == CO_OK)
        self->classes = train.index.classes;
    co_shard_set_close(&train);
    return st;
}

static co_status tar_open(void *state, co_dataset_info *info, const char *path, co_split split)
{
    tar *self = state;
    co_status st;

    if (self->channels == 2)
        return co_fail(CO_E_USAGE, "data tar: channels is 1 or 3");
    if (!path)
        return co_fail(
            CO_E_USAGE,
            "data tar: set data.path, the folder with train/ and val/ in it, or its address");
    st = tar_open_split(&self->shards, self, path, split);
    if (st == CO_OK)
        st = tar_count_classes(self, path, split);
    if (st != CO_OK) {
        co_shard_set_close(&self->shards);
        return st;
    }
    info->count = self->shards.index.samples;
    info->encoded = true;
    info->shape = (co_shape){3, {self->channels, 0, 0}};
    info->classes = self->classes;
    return CO_OK;
}

static co_status tar_read(const void *state, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    return co_shard_set_read(out, &((const tar *)state)->shards, buffer, i);
}

static int32_t tar_label(const void *state, uint64_t i)
{
    return (int32_t)co_shard_index_entry(&((const tar *)state)->shards.index, i).label;
}

static const char *tar_class_name(const void *state, int32_t label)
{
    const co_shard_index *index = &((const tar *)state)->shards.index;

    return index->class_name && (uint32_t)label < index->classes ? index->class_name[label] : NULL;
}

static void tar_sample_name(const void *state, char *out, size_t size, uint64_t i)
{
    co_shard_set_sample_name(&((const tar *)state)->shards, out, size, i);
}

static void tar_close(void *state)
{
    co_shard_set_close(&((tar *)state)->shards);
}

const co_dataset_ops co_dataset_tar = {
    .name = "tar",
    .summary = "JPEG and PNG files in tar files, local or of a web server: path/train/*.tar, "
               "path/val/*.tar",
    .keys = tar_keys,
    .self_size = sizeof(tar),
    .open = tar_open,
    .read = tar_read,
    .label = tar_label,
    .sample_name = tar_sample_name,
    .class_name = tar_class_name,
    .close = tar_close,
};
