/*
 * shard_index.c - reads and makes indices of sharded sets. Untrusted input.
 *
 * Reading checks all of it, so finding a sample needs no checks.
 */
#include "data/shard_index.h"

#include <libdeflate.h>
#include <string.h>

#include "core/mem.h"
#include "core/sha256.h"
#include "core/text.h"
#include "data/shard_layout.h"

static uint32_t shard_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t shard_u64(const uint8_t *at)
{
    return shard_u32(at) | (uint64_t)shard_u32(at + 4) << 32;
}

static void shard_put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void shard_put64(uint8_t *at, uint64_t value)
{
    shard_put32(at, (uint32_t)value);
    shard_put32(at + 4, (uint32_t)(value >> 32));
}

static co_status shard_invalid(const char *name, const char *what)
{
    return co_fail(CO_E_DATA, "%s: %s cannot be; write the shards again", name, what);
}

co_status co_shard_index_size(uint64_t *out, const uint8_t *head, const char *name)
{
    uint32_t version;

    if (memcmp(head, SHARD_MAGIC, 8) != 0)
        return co_fail(CO_E_DATA,
                       "%s: is not an index of shards; `cohort data shard` and `cohort data "
                       "pack --shards` write one",
                       name);
    version = shard_u32(head + SHARD_AT_VERSION);
    if (version != SHARD_VERSION && version != SHARD_OF_PACKS)
        return co_fail(CO_E_DATA,
                       "%s: an index of shards of version %u, this program reads %d and %d; write "
                       "the shards again or use a newer program",
                       name, version, SHARD_VERSION, SHARD_OF_PACKS);
    if (libdeflate_crc32(0, head, SHARD_AT_HEAD_CHECK) != shard_u32(head + SHARD_AT_HEAD_CHECK))
        return co_fail(CO_E_DATA, "%s: the checksum of its header is wrong; write the shards again",
                       name);
    *out = shard_u64(head + SHARD_AT_SIZE);
    return CO_OK;
}

static bool shard_is_side(uint32_t n)
{
    return n >= 1 && n <= CO_SHARD_MAX_SIDE;
}

static co_status shard_read_records(co_shard_records *out, const uint8_t *head, const char *name)
{
    const uint32_t encoded = shard_u32(head + SHARD_AT_RECORDS);

    *out = (co_shard_records){.packed = shard_u32(head + SHARD_AT_VERSION) == SHARD_OF_PACKS};
    if (!out->packed)
        return CO_OK;
    out->encoded = encoded == 1;
    out->channels = shard_u32(head + SHARD_AT_SHAPE);
    out->height = shard_u32(head + SHARD_AT_SHAPE + 4);
    out->width = shard_u32(head + SHARD_AT_SHAPE + 8);
    if (encoded > 1)
        return shard_invalid(name, "the kind of its records");
    if (out->encoded && (out->channels == 1 || out->channels == 3) && !out->height && !out->width)
        return CO_OK;
    if (out->encoded || !shard_is_side(out->channels) || !shard_is_side(out->height) ||
        !shard_is_side(out->width))
        return shard_invalid(name, "the shape of its records");
    return CO_OK;
}

/* The counts, and where each part is. */
static co_status shard_read_head(co_shard_index *index, uint64_t names[3], const uint8_t *bytes,
                                 size_t size, const char *name)
{
    uint64_t whole, left;

    if (size < CO_SHARD_HEAD)
        return co_fail(CO_E_DATA, "%s: is not an index of shards: too short", name);
    CO_TRY(co_shard_index_size(&whole, bytes, name));
    if (whole != size)
        return co_fail(CO_E_DATA, "%s: %s: %zu bytes, its header says %llu; write the shards again",
                       name, size < whole ? "cut short" : "too long", size,
                       (unsigned long long)whole);
    if (libdeflate_crc32(0, bytes + CO_SHARD_HEAD, size - CO_SHARD_HEAD) !=
        shard_u32(bytes + SHARD_AT_CHECK))
        return co_fail(CO_E_DATA, "%s: its checksum is wrong; write the shards again", name);
    index->shards = shard_u32(bytes + SHARD_AT_SHARDS);
    index->classes = shard_u32(bytes + SHARD_AT_CLASSES);
    index->samples = shard_u64(bytes + SHARD_AT_SAMPLES);
    index->checksums = shard_u32(bytes + SHARD_AT_FLAGS) & SHARD_FLAG_CHECKSUMS;
    CO_TRY(shard_read_records(&index->records, bytes, name));
    if (index->shards < 1 || index->shards > CO_SHARD_MAX_SHARDS)
        return shard_invalid(name, "the number of its shards");
    if (index->classes < 1 || index->classes > CO_SHARD_MAX_CLASSES)
        return shard_invalid(name, "the number of its classes");
    left = size - CO_SHARD_HEAD;
    if (index->shards > left / SHARD_ROW)
        return shard_invalid(name, "the number of its shards");
    left -= (uint64_t)index->shards * SHARD_ROW;
    if (index->samples < 1 || index->samples > UINT32_MAX || index->samples > left / SHARD_ENTRY)
        return shard_invalid(name, "the number of its samples");
    left -= index->samples * SHARD_ENTRY;
    for (int i = 0; i < 3; i++) {
        names[i] = shard_u64(bytes + SHARD_AT_NAMES + 8 * i);
        if (names[i] > left || names[i] > UINT32_MAX)
            return shard_invalid(name, "the size of its names");
        left -= names[i];
    }
    return left == 0 ? CO_OK : shard_invalid(name, "the size of its names");
}

/* A plain name of a file, which is put into paths and addresses as it is. */
static bool shard_is_name(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return name[0] && name[0] != '.' && strlen(name) <= 255 &&
           strspn(name, allowed) == strlen(name);
}

/* The start of each of n texts that fill `size` bytes. */
static bool shard_find_texts(const char **out, uint32_t *offset, uint64_t n, const char *text,
                             uint64_t size)
{
    const char *at = text, *end = text + size;

    for (uint64_t i = 0; i < n; i++) {
        const char *stop = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

        if (!stop)
            return false;
        if (out)
            out[i] = at;
        else
            offset[i] = (uint32_t)(at - text);
        at = stop + 1;
    }
    return at == end;
}

static co_status shard_read_names(co_shard_index *index, const uint64_t names[3], const char *text,
                                  bool has_classes, const char *name)
{
    const bool has_samples = !index->records.packed;

    index->shard_name = co_calloc(index->shards, sizeof(*index->shard_name));
    if (has_samples)
        index->sample_name = co_calloc((size_t)index->samples, sizeof(*index->sample_name));
    if (has_classes)
        index->class_name = co_calloc(index->classes, sizeof(*index->class_name));
    if (!index->shard_name || (has_samples && !index->sample_name) ||
        (has_classes && !index->class_name))
        return CO_E_NOMEM;
    if (!shard_find_texts(index->shard_name, NULL, index->shards, text, names[0]))
        return shard_invalid(name, "the names of its shards");
    for (uint32_t s = 0; s < index->shards; s++)
        if (!shard_is_name(index->shard_name[s]))
            return co_fail(CO_E_DATA,
                           "%s: a shard is called '%s'; names are of letters, digits and ._-", name,
                           CO_SHOW(index->shard_name[s]));
    text += names[0];
    if (!shard_find_texts(index->class_name, NULL, has_classes ? index->classes : 0, text,
                          names[1]))
        return shard_invalid(name, "the names of its classes");
    index->sample_names = text + names[1];
    if (!shard_find_texts(NULL, index->sample_name, has_samples ? index->samples : 0,
                          index->sample_names, names[2]))
        return shard_invalid(name, "the names of its samples");
    return CO_OK;
}

static co_status shard_check_entries(const co_shard_index *index, const char *name)
{
    const co_shard_records *r = &index->records;
    const uint64_t raw = (uint64_t)r->channels * r->height * r->width; /* 0: of any size */

    for (uint64_t i = 0; i < index->samples; i++) {
        const co_shard_entry e = co_shard_index_entry(index, i);
        uint64_t size;

        if (e.shard >= index->shards || e.label >= index->classes)
            return co_fail(CO_E_DATA, "%s: sample %llu has label %u of %u, shard %u of %u", name,
                           (unsigned long long)i, e.label, index->classes, e.shard, index->shards);
        size = co_shard_index_shard_size(index, e.shard);
        if (e.size < 1 || e.size > CO_SHARD_MAX_RECORD || e.size > size || e.offset > size - e.size)
            return co_fail(CO_E_DATA, "%s: sample %llu is not within its shard", name,
                           (unsigned long long)i);
        if (raw && e.size != raw)
            return shard_invalid(name, "the size of a record");
    }
    return CO_OK;
}

co_status co_shard_index_parse(co_shard_index *out, const uint8_t *bytes, size_t size,
                               const char *name)
{
    uint64_t names[3];

    *out = (co_shard_index){0};
    CO_TRY(shard_read_head(out, names, bytes, size, name));
    out->shard = bytes + CO_SHARD_HEAD;
    out->entry = out->shard + (size_t)out->shards * SHARD_ROW;
    CO_TRY(shard_check_entries(out, name));
    return shard_read_names(out, names, (const char *)out->entry + out->samples * SHARD_ENTRY,
                            shard_u32(bytes + SHARD_AT_FLAGS) & SHARD_FLAG_CLASS_NAMES, name);
}

void co_shard_index_free(co_shard_index *index)
{
    co_free(index->shard_name);
    co_free(index->class_name);
    co_free(index->sample_name);
    *index = (co_shard_index){0};
}

co_shard_entry co_shard_index_entry(const co_shard_index *index, uint64_t i)
{
    const uint8_t *at = index->entry + i * SHARD_ENTRY;

    return (co_shard_entry){shard_u64(at), shard_u32(at + 8), shard_u32(at + 12),
                            shard_u32(at + 16), shard_u32(at + 20)};
}

uint64_t co_shard_index_shard_size(const co_shard_index *index, uint32_t shard)
{
    return shard_u64(index->shard + (size_t)shard * SHARD_ROW);
}

const uint8_t *co_shard_index_tag(const co_shard_index *index, uint32_t shard)
{
    return index->shard + (size_t)shard * SHARD_ROW + 8;
}

const char *co_shard_index_name(const co_shard_index *index, uint64_t i)
{
    return index->sample_name ? index->sample_names + index->sample_name[i] : NULL;
}

const char *co_shard_index_class_name(const co_shard_index *index, int32_t label)
{
    return index->class_name && (uint32_t)label < index->classes ? index->class_name[label] : NULL;
}

static co_status list_add(co_shard_list *list, const void *bytes, size_t n)
{
    if (list->room - list->used < n) {
        const size_t room = 2 * list->room + n + 4096;
        uint8_t *at = co_realloc(list->at, room, 1);

        if (!at)
            return CO_E_NOMEM;
        list->at = at;
        list->room = room;
    }
    memcpy(list->at + list->used, bytes, n);
    list->used += n;
    return CO_OK;
}

co_status co_shard_builder_shard(co_shard_builder *b, const char *name, uint64_t size,
                                 const uint8_t tag[CO_SHARD_TAG])
{
    uint8_t row[SHARD_ROW];

    if (b->shards == CO_SHARD_MAX_SHARDS)
        return co_fail(CO_E_DATA, "%s: more than %d shards", name, CO_SHARD_MAX_SHARDS);
    shard_put64(row, size);
    memcpy(row + 8, tag, CO_SHARD_TAG);
    b->shards++;
    CO_TRY(list_add(&b->shard, row, sizeof(row)));
    return list_add(&b->shard_names, name, strlen(name) + 1);
}

co_status co_shard_builder_sample(co_shard_builder *b, const co_shard_entry *entry,
                                  const char *name)
{
    uint8_t row[SHARD_ENTRY];

    if (b->samples == UINT32_MAX)
        return co_fail(CO_E_DATA, "more than %u samples", UINT32_MAX);
    shard_put64(row, entry->offset);
    shard_put32(row + 8, entry->size);
    shard_put32(row + 12, entry->label);
    shard_put32(row + 16, entry->checksum);
    shard_put32(row + 20, entry->shard);
    b->samples++;
    if (entry->label >= b->labels)
        b->labels = entry->label + 1;
    CO_TRY(list_add(&b->entry, row, sizeof(row)));
    return b->records.packed ? CO_OK : list_add(&b->sample_names, name, strlen(name) + 1);
}

static void builder_head(uint8_t *head, const co_shard_builder *b, uint64_t class_names,
                         uint32_t flags, uint64_t size)
{
    memcpy(head, SHARD_MAGIC, 8);
    shard_put32(head + SHARD_AT_VERSION, b->records.packed ? SHARD_OF_PACKS : SHARD_VERSION);
    shard_put32(head + SHARD_AT_RECORDS, b->records.encoded);
    shard_put32(head + SHARD_AT_SHAPE, b->records.channels);
    shard_put32(head + SHARD_AT_SHAPE + 4, b->records.height);
    shard_put32(head + SHARD_AT_SHAPE + 8, b->records.width);
    shard_put32(head + SHARD_AT_SHARDS, b->shards);
    shard_put32(head + SHARD_AT_FLAGS, flags);
    shard_put64(head + SHARD_AT_SAMPLES, b->samples);
    shard_put64(head + SHARD_AT_NAMES, b->shard_names.used);
    shard_put64(head + SHARD_AT_NAMES + 8, class_names);
    shard_put64(head + SHARD_AT_NAMES + 16, b->sample_names.used);
    shard_put64(head + SHARD_AT_SIZE, size);
}

co_status co_shard_builder_finish(uint8_t **out, size_t *size, co_shard_builder *b,
                                  uint32_t classes, const char *const *class_name, bool checksums)
{
    const uint32_t flags =
        (checksums ? SHARD_FLAG_CHECKSUMS : 0) | (class_name ? SHARD_FLAG_CLASS_NAMES : 0);
    static const uint8_t space[CO_SHARD_HEAD];
    co_shard_list all = {0}, names = {0};
    co_status st = list_add(&all, space, sizeof(space));

    for (uint32_t c = 0; class_name && c < classes && st == CO_OK; c++)
        st = list_add(&names, class_name[c], strlen(class_name[c]) + 1);
    if (st == CO_OK)
        st = list_add(&all, b->shard.at, b->shard.used);
    if (st == CO_OK)
        st = list_add(&all, b->entry.at, b->entry.used);
    if (st == CO_OK)
        st = list_add(&all, b->shard_names.at, b->shard_names.used);
    if (st == CO_OK && names.used)
        st = list_add(&all, names.at, names.used);
    if (st == CO_OK && b->sample_names.used)
        st = list_add(&all, b->sample_names.at, b->sample_names.used);
    co_free(names.at);
    if (st != CO_OK) {
        co_free(all.at);
        return st;
    }
    builder_head(all.at, b, names.used, flags, all.used);
    shard_put32(all.at + SHARD_AT_CLASSES, classes);
    shard_put32(all.at + SHARD_AT_CHECK,
                libdeflate_crc32(0, all.at + CO_SHARD_HEAD, all.used - CO_SHARD_HEAD));
    shard_put32(all.at + SHARD_AT_HEAD_CHECK, libdeflate_crc32(0, all.at, SHARD_AT_HEAD_CHECK));
    *out = all.at;
    *size = all.used;
    return CO_OK;
}

void co_shard_builder_free(co_shard_builder *b)
{
    co_free(b->shard.at);
    co_free(b->entry.at);
    co_free(b->shard_names.at);
    co_free(b->sample_names.at);
    *b = (co_shard_builder){0};
}

void co_shard_tag_end(uint8_t tag[CO_SHARD_TAG], struct co_sha256 *hash)
{
    char hex[65];

    co_sha256_end(hex, hash);
    for (size_t i = 0; i < CO_SHARD_TAG; i++) {
        unsigned byte = 0;

        for (int k = 0; k < 2; k++) {
            const char digit = hex[2 * i + (size_t)k];

            byte = byte << 4 | (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
        }
        tag[i] = (uint8_t)byte;
    }
}
