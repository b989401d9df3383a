/* shard_write.c - samples to shards, in the order of the set. */
#include "data/shard_write.h"

#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/open.h"
#include "core/sha256.h"
#include "data/pack_format.h"
#include "data/shard_index.h"
#include "data/tar_write.h"
#include "image/encode.h"

typedef struct write_state {
    co_shard_writing *to;
    co_pack_converter converter;
    co_pack_head head;       /* of packed files */
    const char **class_name; /* owned; NULL: they have none */
    co_shard_builder builder;
    co_tar_writer *tar;   /* owned: the open shard; NULL: none is, or it is a packed file */
    co_pack_writer *pack; /* owned: the same */
    co_buffer png;
    char name[64]; /* of the open shard */
} write_state;

static co_status write_path(char out[PATH_MAX], const write_state *w, const char *name)
{
    if (snprintf(out, PATH_MAX, "%s/%s", w->to->folder, name) >= PATH_MAX)
        return co_fail(CO_E_IO, "%s: the path is too long", w->to->folder);
    return CO_OK;
}

static co_status write_begin(write_state *w)
{
    char path[PATH_MAX];

    snprintf(w->name, sizeof(w->name), "%.32s-%06u.%s", w->to->prefix, w->builder.shards,
             w->to->packed ? "pack" : "tar");
    CO_TRY(write_path(path, w, w->name));
    if (w->to->packed)
        return co_pack_writer_open(&w->pack, path, &w->head, w->class_name);
    return co_tar_writer_open(&w->tar, path);
}

/* A packed file's header is written last, so it is read once more. */
static co_status write_pack_tag(uint8_t tag[CO_SHARD_TAG], const char *path)
{
    static const co_open_rule rule = {.status = CO_E_IO, .expected = "a shard"};
    uint8_t bytes[65536];
    co_sha256 hash;
    bool failed;
    FILE *file;
    size_t n;

    CO_TRY(co_open_stream(&file, NULL, path, &rule));
    co_sha256_begin(&hash);
    while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
        co_sha256_add(&hash, bytes, n);
    failed = ferror(file);
    fclose(file);
    if (failed)
        return co_fail(CO_E_IO, "%s: cannot read what was written: %s", path, strerror(errno));
    co_shard_tag_end(tag, &hash);
    return CO_OK;
}

static co_status write_end_pack(uint64_t *size, uint8_t tag[CO_SHARD_TAG], write_state *w)
{
    co_pack_writer *pack = w->pack;
    char path[PATH_MAX];

    w->pack = NULL;
    CO_TRY(co_pack_writer_commit(size, pack));
    CO_TRY(write_path(path, w, w->name));
    return write_pack_tag(tag, path);
}

static co_status write_end(write_state *w)
{
    co_tar_writer *tar = w->tar;
    uint8_t tag[CO_SHARD_TAG];
    uint64_t size;

    w->tar = NULL;
    CO_TRY(tar ? co_tar_writer_commit(&size, tag, tar) : write_end_pack(&size, tag, w));
    w->to->bytes_out += size;
    return co_shard_builder_shard(&w->builder, w->name, size, tag);
}

/* The record; in a tar file it is an image: pixels become a PNG. */
static co_status write_record(co_bytes *out, write_state *w, uint64_t i)
{
    const co_dataset_info *info = co_dataset_stored(w->to->data);
    char name[PATH_MAX];

    CO_TRY(co_pack_convert(out, &w->converter, i));
    w->to->bytes_in += w->converter.read;
    if (!w->to->packed && !info->encoded)
        CO_TRY(co_image_encode_png(out, &w->png, out->at, &info->shape));
    if (out->n > 0 && out->n <= CO_SHARD_MAX_RECORD)
        return CO_OK;
    co_dataset_sample_name(w->to->data, name, sizeof(name), i);
    return co_fail(CO_E_DATA, "%s: an image of %zu bytes cannot be in a shard", name, out->n);
}

/* NUMBER.jpg and NUMBER.cls. */
static co_status write_members(write_state *w, co_shard_entry *entry, const co_bytes *bytes,
                               uint64_t i)
{
    char image[32], label[32];
    uint64_t at;
    int n;

    snprintf(image, sizeof(image), "%09llu.%s", (unsigned long long)i,
             bytes->at[0] == 0x89 ? "png" : "jpg");
    CO_TRY(co_tar_writer_add(&entry->offset, w->tar, image, bytes->at, bytes->n));
    CO_TRY(co_shard_builder_sample(&w->builder, entry, image));
    snprintf(image, sizeof(image), "%09llu.cls", (unsigned long long)i);
    n = snprintf(label, sizeof(label), "%u", entry->label);
    return co_tar_writer_add(&at, w->tar, image, label, (size_t)n);
}

static co_status write_sample(write_state *w, uint64_t i)
{
    co_shard_entry entry = {.shard = w->builder.shards};
    co_bytes bytes;
    int32_t class;

    CO_TRY(co_dataset_take_label(&class, w->to->data, i));
    CO_TRY(write_record(&bytes, w, i));
    entry.size = (uint32_t)bytes.n;
    entry.label = (uint32_t) class;
    entry.checksum = libdeflate_crc32(0, bytes.at, bytes.n);
    if (w->to->packed) {
        entry.offset = co_pack_writer_at(w->pack);
        CO_TRY(co_pack_writer_add(w->pack, w->to->split, entry.label, &bytes));
        CO_TRY(co_shard_builder_sample(&w->builder, &entry, NULL));
    } else {
        CO_TRY(write_members(w, &entry, &bytes, i));
    }
    return w->to->tick(w->to->arg);
}

static co_status write_put_index(write_state *w, const uint8_t *bytes, size_t size)
{
    co_atomic_file *file;
    char path[PATH_MAX];

    CO_TRY(write_path(path, w, CO_SHARD_INDEX_NAME));
    CO_TRY(co_atomic_open(&file, path));
    if (fwrite(bytes, 1, size, co_atomic_stream(file)) != size) {
        const co_status st = co_fail(CO_E_IO, "%s: cannot write: %s", path, strerror(errno));

        co_atomic_discard(file);
        return st;
    }
    w->to->bytes_out += size;
    return co_atomic_commit(file);
}

static co_status write_index(write_state *w)
{
    uint8_t *bytes = NULL;
    size_t size;
    co_status st;

    CO_TRY(
        co_shard_builder_finish(&bytes, &size, &w->builder, w->head.classes, w->class_name, true));
    st = write_put_index(w, bytes, size);
    co_free(bytes);
    return st;
}

static co_status write_take_names(write_state *w)
{
    const co_dataset *data = w->to->data;

    if (!co_dataset_class_name(data, 0))
        return CO_OK;
    w->class_name = co_calloc(w->head.classes, sizeof(*w->class_name));
    if (!w->class_name)
        return CO_E_NOMEM;
    for (uint32_t c = 0; c < w->head.classes; c++)
        w->class_name[c] = co_dataset_class_name(data, (int32_t)c);
    return CO_OK;
}

static co_status write_check(write_state *w)
{
    const co_pack_head *head = &w->head;

    if (!w->to->packed && head->channels != 1 && head->channels != 3)
        return co_fail(CO_E_USAGE,
                       "%s has samples of %u channels; tar files hold images of 1 or 3, packed "
                       "files (`cohort data pack --shards`) any",
                       co_dataset_name(w->to->data), head->channels);
    if (head->classes > CO_SHARD_MAX_CLASSES)
        return co_fail(CO_E_USAGE, "%s has %u classes; shards have %d at most",
                       co_dataset_name(w->to->data), head->classes, CO_SHARD_MAX_CLASSES);
    if (w->to->packed)
        w->builder.records =
            (co_shard_records){true, head->encoded, head->channels, head->height, head->width};
    return write_take_names(w);
}

static co_status write_all(write_state *w)
{
    const uint64_t n = co_dataset_count(w->to->data);
    const uint64_t shards = w->to->shards < n ? w->to->shards : n;

    CO_TRY(write_check(w));
    for (uint64_t i = 0; i < n; i++) {
        if (!w->tar && !w->pack)
            CO_TRY(write_begin(w));
        CO_TRY(write_sample(w, i));
        if (i + 1 == n || (i + 1) * shards / n != i * shards / n)
            CO_TRY(write_end(w));
    }
    return write_index(w);
}

co_status co_shard_write(co_shard_writing *writing)
{
    write_state w = {.to = writing};
    co_status st;

    writing->bytes_in = writing->bytes_out = 0;
    if (!co_dataset_has_images(writing->data))
        return co_fail(CO_E_USAGE, "%s holds no images, which shards are of",
                       co_dataset_name(writing->data));
    st = co_pack_converter_open(&w.converter, &w.head, writing->data, &writing->options);
    if (st == CO_OK)
        st = write_all(&w);
    co_tar_writer_discard(w.tar);
    co_pack_writer_discard(w.pack);
    co_shard_builder_free(&w.builder);
    co_pack_converter_close(&w.converter);
    co_buffer_free(&w.png);
    co_free(w.class_name);
    return st;
}
