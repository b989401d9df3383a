/*
 * tar.c - data set "tar": images in sharded tar files, as WebDataset names them.
 *
 * A sample is found by the index of its split, so any order is possible: that of a folder of the
 * same images. Does not decode images.
 */
#include "data/formats.h"
#include "data/shard_pattern.h"
#include "data/shard_split.h"

typedef struct tar {
    int64_t channels;
    const char *label;
    co_shard_keys keys;
    /* set by open */
    co_shard_set shards;
    int64_t classes;
} tar;

#define TAR(field) offsetof(tar, field)

static const co_key tar_keys[] = {
    {"channels", CO_KEY_INT, TAR(channels), "3", 1, 3, NULL,
     "3: colour, 1: grey; images are converted"},
    CO_SHARD_KEY_ROWS(TAR(keys), "folder below path with the shards of the training split, or a "
                                 "range: train-{0000..0127}.tar"),
    {"label", CO_KEY_STRING, TAR(label), "label", 0, 0, NULL,
     "the number in KEY.json that is the class, in shards without KEY.cls"},
    CO_KEYS_END,
};

/* Without an index the classes are those of the training split, as many as its highest label
   needs: the test split may lack some. */
static co_status tar_count_classes(tar *self, const co_shard_source *source, co_split split)
{
    co_shard_set train = {.walked = false};
    co_status st;

    self->classes = self->shards.index.classes;
    if (split == CO_SPLIT_TRAIN || !self->shards.walked)
        return CO_OK;
    if (!co_shard_pattern_is(self->keys.train) &&
        !co_shard_split_is_there(source, self->keys.train))
        return CO_OK;
    st = co_shard_split_open(&train, &self->keys, source, CO_SPLIT_TRAIN);
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
    const co_shard_source source = {path, self->label, false};
    co_status st;

    if (self->channels == 2)
        return co_fail(CO_E_USAGE, "data tar: channels is 1 or 3");
    if (!path)
        return co_fail(
            CO_E_USAGE,
            "data tar: set data.path, the folder with train/ and val/ in it, or its address");
    st = co_shard_split_open(&self->shards, &self->keys, &source, split);
    if (st == CO_OK)
        st = tar_count_classes(self, &source, split);
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

static bool tar_expect(const void *state, const uint32_t *sample, uint64_t n)
{
    return co_shard_set_expect(&((const tar *)state)->shards, sample, n);
}

static int32_t tar_label(const void *state, uint64_t i)
{
    return (int32_t)co_shard_index_entry(&((const tar *)state)->shards.index, i).label;
}

static const char *tar_class_name(const void *state, int32_t label)
{
    return co_shard_index_class_name(&((const tar *)state)->shards.index, label);
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
    .expect = tar_expect,
};
