/*
 * pack.c - data set "pack": one packed file, which is mapped; records are used in place.
 */
#include "data/formats.h"
#include "data/pack_format.h"

typedef struct pack {
    co_pack file;
    co_split split;
} pack;

static const co_key pack_keys[] = {CO_KEYS_END};

static co_status pack_open(void *state, co_dataset_info *info, const char *path, co_split split)
{
    pack *self = state;
    const co_pack_head *head = &self->file.head;

    if (!path)
        return co_fail(CO_E_USAGE,
                       "data pack: set data.path, the file that `cohort data pack` wrote");
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

static co_status pack_read(const void *state, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    const pack *self = state;

    (void)buffer;
    return co_pack_record(out, &self->file, self->split, i);
}

static int32_t pack_label(const void *state, uint64_t i)
{
    const pack *self = state;

    return (int32_t)co_pack_entry_at(&self->file, self->split, i).label;
}

static const char *pack_class_name(const void *state, int32_t label)
{
    const pack *self = state;

    return self->file.class_name ? self->file.class_name[label] : NULL;
}

static void pack_close(void *state)
{
    co_pack_close(&((pack *)state)->file);
}

const co_dataset_ops co_dataset_pack = {
    .name = "pack",
    .summary = "one file that `cohort data pack` made of another data set; path is the file",
    .keys = pack_keys,
    .self_size = sizeof(pack),
    .open = pack_open,
    .read = pack_read,
    .label = pack_label,
    .class_name = pack_class_name,
    .close = pack_close,
};
