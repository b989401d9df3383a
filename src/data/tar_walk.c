/*
 * tar_walk.c - members of a tar file to samples. Untrusted input.
 */
#include "data/tar_walk.h"

#include <jansson.h>
#include <libdeflate.h>
#include <string.h>
#include <strings.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/text.h"
#include "data/shard_layout.h"

#define WALK_MAX_CLS  64
#define WALK_MAX_JSON (1 << 20)

/* What has been found of the sample whose members are being read. */
typedef struct walk {
    co_shard_builder *builder;
    const co_tar_source *source;
    const char *label_key;
    bool checksums;
    char key[CO_TAR_MAX_NAME];
    bool open, has_image, has_cls, has_json;
    char image[CO_TAR_MAX_NAME]; /* name of the member */
    co_shard_entry entry;
    uint8_t *bytes; /* owned: of a member that is read */
    size_t room;
} walk;

typedef enum walk_kind { WALK_OTHER, WALK_IMAGE, WALK_CLS, WALK_JSON } walk_kind;

static co_status walk_fail(const walk *w, const char *what)
{
    return co_fail(CO_E_DATA, "%s: sample '%s' %s", w->source->name, CO_SHOW(w->key), what);
}

static co_status walk_take(walk *w, const co_tar_member *member, size_t max)
{
    if (member->size > max)
        return co_fail(CO_E_DATA, "%s: '%s' has %llu bytes; %zu are the limit", w->source->name,
                       CO_SHOW(member->name), (unsigned long long)member->size, max);
    if (w->room < member->size + 1) {
        co_free(w->bytes);
        w->room = (size_t)member->size + 1;
        w->bytes = co_calloc(w->room, 1);
        if (!w->bytes) {
            w->room = 0;
            return CO_E_NOMEM;
        }
    }
    w->bytes[member->size] = '\0';
    return w->source->read(w->source->arg, w->bytes, member->offset, (size_t)member->size);
}

static co_status walk_cls(walk *w, const co_tar_member *member)
{
    uint32_t label = 0;
    const char *at;
    int digits = 0;

    CO_TRY(walk_take(w, member, WALK_MAX_CLS));
    at = (const char *)w->bytes;
    at += strspn(at, " \t\r\n");
    for (; *at >= '0' && *at <= '9' && digits < 7; at++, digits++)
        label = 10 * label + (uint32_t)(*at - '0');
    at += strspn(at, " \t\r\n");
    if (digits == 0 || at != (const char *)w->bytes + member->size || label >= CO_SHARD_MAX_CLASSES)
        return walk_fail(w, "has a .cls that is not the number of a class, 0 to 99999");
    w->entry.label = label;
    w->has_cls = true;
    return CO_OK;
}

static co_status walk_json(walk *w, const co_tar_member *member)
{
    const json_t *value;
    json_error_t error;
    json_t *root;

    CO_TRY(walk_take(w, member, WALK_MAX_JSON));
    root = json_loadb((const char *)w->bytes, (size_t)member->size, 0, &error);
    if (!root)
        return walk_fail(w, "has a .json that is none");
    value = json_object_get(root, w->label_key);
    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        json_integer_value(value) < CO_SHARD_MAX_CLASSES) {
        if (!w->has_cls)
            w->entry.label = (uint32_t)json_integer_value(value);
        w->has_json = true;
    }
    json_decref(root);
    return CO_OK;
}

static co_status walk_image(walk *w, const co_tar_member *member)
{
    if (w->has_image)
        return walk_fail(w, "has two images");
    if (member->size == 0)
        return walk_fail(w, "has an empty image");
    if (member->size > CO_SHARD_MAX_RECORD)
        return walk_fail(w, "has an image of more than 256 MiB");
    w->has_image = true;
    w->entry.offset = member->offset;
    w->entry.size = (uint32_t)member->size;
    memcpy(w->image, member->name, strlen(member->name) + 1);
    if (!w->checksums)
        return CO_OK;
    CO_TRY(walk_take(w, member, CO_SHARD_MAX_RECORD));
    w->entry.checksum = libdeflate_crc32(0, w->bytes, (size_t)member->size);
    return CO_OK;
}

static co_status walk_flush(walk *w)
{
    const bool has_label = w->has_cls || w->has_json;

    if (!w->open)
        return CO_OK;
    if (!w->has_image)
        return walk_fail(w, "has no image: KEY.jpg, KEY.jpeg or KEY.png, where KEY has no dot");
    if (!has_label)
        return co_fail(
            CO_E_DATA,
            "%s: sample '%s' has no class: neither KEY.cls nor a number '%s' in KEY.json",
            w->source->name, CO_SHOW(w->key), CO_SHOW(w->label_key));
    CO_TRY(co_shard_builder_sample(w->builder, &w->entry, w->image));
    w->open = w->has_image = w->has_cls = w->has_json = false;
    w->entry = (co_shard_entry){.shard = w->entry.shard};
    return CO_OK;
}

static walk_kind walk_kind_of(const char *ending)
{
    static const struct {
        const char *name;
        walk_kind kind;
    } kinds[] = {{"jpg", WALK_IMAGE},
                 {"jpeg", WALK_IMAGE},
                 {"png", WALK_IMAGE},
                 {"cls", WALK_CLS},
                 {"json", WALK_JSON}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcasecmp(ending, kinds[i].name) == 0)
            return kinds[i].kind;
    return WALK_OTHER;
}

/* The length of a member's key; 0: it is of no sample. Names that begin with a dot or with two
   underscores are of programs. */
static size_t walk_key(const char *name)
{
    const char *base = co_fs_name(name);
    const char *dot = strchr(base, '.');

    if (!dot || dot == base || strncmp(base, "__", 2) == 0)
        return 0;
    return (size_t)(dot - name);
}

static co_status walk_member(walk *w, const co_tar_member *member)
{
    const size_t n = walk_key(member->name);
    walk_kind kind;

    if (!member->is_file || n == 0)
        return CO_OK;
    kind = walk_kind_of(member->name + n + 1);
    if (!w->open || strlen(w->key) != n || memcmp(w->key, member->name, n) != 0) {
        CO_TRY(walk_flush(w));
        memcpy(w->key, member->name, n);
        w->key[n] = '\0';
        w->open = true;
    }
    switch (kind) {
    case WALK_IMAGE:
        return walk_image(w, member);
    case WALK_CLS:
        return walk_cls(w, member);
    case WALK_JSON:
        return walk_json(w, member);
    case WALK_OTHER:
        break;
    }
    return CO_OK;
}

static co_status walk_all(walk *w)
{
    co_tar_reader reader;

    co_tar_begin(&reader, w->source);
    for (;;) {
        co_tar_member member;
        bool end;

        CO_TRY(co_tar_next(&member, &end, &reader));
        if (end)
            return walk_flush(w);
        CO_TRY(walk_member(w, &member));
    }
}

co_status co_tar_walk(co_shard_builder *builder, const co_tar_source *source, uint32_t shard,
                      const char *label, bool checksums)
{
    walk w = {.builder = builder,
              .source = source,
              .label_key = label,
              .checksums = checksums,
              .entry = {.shard = shard}};
    const co_status st = walk_all(&w);

    co_free(w.bytes);
    return st;
}
