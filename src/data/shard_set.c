/*
 * shard_set.c - opens a sharded split: by its index, or where there is none by reading the headers
 * of its tar files.
 */
#include "data/shard_set.h"

#include <libdeflate.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/text.h"
#include "data/folder_names.h"
#include "data/shard_cache.h"
#include "data/shard_pattern.h"
#include "data/tar_walk.h"
#include "fetch/range.h"

#define SET_MAX_INDEX ((uint64_t)1 << 36)

static co_status set_join(char out[PATH_MAX], const char *folder, const char *name)
{
    const int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);

    if (n < 0 || n >= PATH_MAX)
        return co_fail(CO_E_DATA, "%s/%.64s...: the path is too long", folder, name);
    return CO_OK;
}

/* `path`: of the file. */
static co_status set_parse_index(co_shard_set *s, const co_shard_set_options *o, size_t size,
                                 const char *path)
{
    const co_shard_index *index = &s->index;

    CO_TRY(co_shard_index_parse(&s->index, s->index_bytes, size, path));
    if (index->records.packed != o->packed)
        return co_fail(CO_E_DATA, "%s: is of %s files, which data: {name: %s} reads", path,
                       o->packed ? "tar" : "packed", o->packed ? "tar" : "pack");
    if (!o->packed)
        return CO_OK;
    s->verified = co_calloc((size_t)index->samples / 32 + 1, sizeof(*s->verified));
    return s->verified ? CO_OK : CO_E_NOMEM;
}

/* Shards in the folder that the index does not know would be left out silently. */
static co_status set_check_others(const co_shard_set *s)
{
    co_names found = {0};
    co_status st =
        co_names_add(&found, s->root, s->index.records.packed ? CO_NAMES_PACKS : CO_NAMES_TARS);

    for (size_t i = 0; i < found.n && st == CO_OK; i++) {
        bool known = false;

        /* Both are sorted as a rule: the first look is at the same place. */
        for (uint32_t k = 0; k < s->index.shards && !known; k++)
            known = strcmp(s->index.shard_name[(k + i) % s->index.shards],
                           co_names_get(&found, i)) == 0;
        if (!known)
            st = co_fail(CO_E_DATA,
                         "%s/%s: " CO_SHARD_INDEX_NAME " does not know it; remove one of the two",
                         s->root, co_names_get(&found, i));
    }
    co_names_free(&found);
    return st;
}

static co_status set_open_indexed(co_shard_set *s)
{
    char path[PATH_MAX];

    CO_TRY(co_shard_files_create(&s->files, s->index.shards));
    for (uint32_t k = 0; k < s->index.shards; k++) {
        const uint64_t size = co_shard_index_shard_size(&s->index, k);

        CO_TRY(set_join(path, s->root, s->index.shard_name[k]));
        CO_TRY(co_shard_files_open(&s->files, k, path));
        if (s->files.file[k].size != size)
            return co_fail(CO_E_DATA,
                           "%s: %s: %llu bytes, " CO_SHARD_INDEX_NAME
                           " says %llu; write the shards again",
                           path, s->files.file[k].size < size ? "cut short" : "too long",
                           (unsigned long long)s->files.file[k].size, (unsigned long long)size);
    }
    return set_check_others(s);
}

/* A local file as what tar headers are read from. */
typedef struct set_local {
    const co_shard_files *files;
    size_t k;
} set_local;

static co_status set_read_local(void *arg, uint8_t *out, uint64_t offset, size_t n)
{
    const set_local *local = arg;

    return co_shard_files_read(out, local->files, local->k, offset, n);
}

static co_status set_walk_one(co_shard_set *s, co_shard_builder *builder, uint32_t k,
                              const char *name, const char *label)
{
    static const uint8_t tag[CO_SHARD_TAG];
    set_local local = {&s->files, k};
    co_tar_source source = {set_read_local, &local, 0, NULL};
    char path[PATH_MAX];

    CO_TRY(set_join(path, s->root, name));
    CO_TRY(co_shard_files_open(&s->files, k, path));
    source.size = s->files.file[k].size;
    source.name = s->files.file[k].path;
    CO_TRY(co_shard_builder_shard(builder, name, source.size, tag));
    return co_tar_walk(builder, &source, k, label, false);
}

static co_status set_walk(co_shard_set *s, co_shard_builder *builder, const co_names *names,
                          const co_shard_pattern *pattern, const char *label)
{
    const size_t n = pattern ? pattern->count : names->n;

    if (n == 0)
        return co_fail(CO_E_DATA, "%s: holds no shard (*.tar); `cohort data shard` writes some",
                       s->root);
    if (n > CO_SHARD_MAX_SHARDS)
        return co_fail(CO_E_DATA, "%s: more than %d shards", s->root, CO_SHARD_MAX_SHARDS);
    CO_TRY(co_shard_files_create(&s->files, n));
    for (uint32_t k = 0; k < n; k++) {
        char name[CO_SHARD_MAX_NAME];

        if (pattern)
            co_shard_pattern_name(name, pattern, k);
        else
            snprintf(name, sizeof(name), "%s", co_names_get(names, k));
        CO_TRY(set_walk_one(s, builder, k, name, label));
    }
    if (builder->samples == 0)
        return co_fail(CO_E_DATA, "%s: its shards hold no sample: KEY.jpg with KEY.cls", s->root);
    return CO_OK;
}

static co_status set_open_walked(co_shard_set *s, const co_shard_pattern *pattern,
                                 const char *label)
{
    co_shard_builder builder = {0};
    co_names names = {0};
    co_status st = pattern ? CO_OK : co_names_add(&names, s->root, CO_NAMES_TARS);
    size_t size;

    s->walked = true;
    if (st == CO_OK)
        st = set_walk(s, &builder, &names, pattern, label);
    if (st == CO_OK)
        st = co_shard_builder_finish(&s->index_bytes, &size, &builder, builder.labels, NULL, false);
    if (st == CO_OK)
        st = co_shard_index_parse(&s->index, s->index_bytes, size, s->root);
    co_shard_builder_free(&builder);
    co_names_free(&names);
    return st;
}

/* A pattern's folder is part of the root. */
static co_status set_open_pattern(co_shard_set *s, const char *label)
{
    char *slash = strrchr(s->root, '/');
    co_shard_pattern pattern;

    CO_TRY(co_shard_pattern_parse(&pattern, slash + 1));
    *slash = '\0';
    return set_open_walked(s, &pattern, label);
}

/* Only an index says which shards a server has. */
static co_status set_open_remote(co_shard_set *s, const co_shard_set_options *o)
{
    const co_shard_cache_options options = {s->root, o->cache, o->limit, o->retry_s, o->prefetch};
    char path[PATH_MAX], why[PATH_MAX];
    size_t size;
    co_status st;

    CO_TRY(co_range_check_address(s->root));
    if (co_shard_pattern_is(o->split))
        return co_fail(
            CO_E_USAGE,
            "%s: a range of shards is for local files; of a server name the folder, which "
            "has " CO_SHARD_INDEX_NAME,
            s->root);
    CO_TRY(set_join(path, s->root, CO_SHARD_INDEX_NAME));
    st = co_shard_cache_open(&s->cache, &s->index_bytes, &size, &s->missing, &options);
    if (s->missing) {
        snprintf(why, sizeof(why), "%s", co_error_message());
        return co_fail(CO_E_DATA,
                       "%s; shards of a web server need this index, which `cohort data %s` "
                       "writes beside them",
                       why, o->packed ? "pack --shards" : "shard");
    }
    if (st == CO_OK)
        st = set_parse_index(s, o, size, path);
    return st == CO_OK ? co_shard_cache_start(s->cache, &s->index) : st;
}

co_status co_shard_set_open(co_shard_set *out, const co_shard_set_options *options)
{
    char path[PATH_MAX];
    size_t size;

    *out = (co_shard_set){.walked = false};
    /* A web server may not take two slashes for one. */
    CO_TRY(co_fs_join(out->root, sizeof(out->root), options->path, options->split));
    if (co_range_is_address(options->path))
        return set_open_remote(out, options);
    if (co_shard_pattern_is(options->split) && !options->packed)
        return set_open_pattern(out, options->label);
    CO_TRY(set_join(path, out->root, CO_SHARD_INDEX_NAME));
    if (!co_fs_exists(path) && options->packed)
        return co_fail(CO_E_DATA, "%s: is not there; `cohort data pack --shards` writes it", path);
    if (!co_fs_exists(path))
        return set_open_walked(out, NULL, options->label);
    CO_TRY(co_fs_read(&out->index_bytes, &size, path, SET_MAX_INDEX, CO_E_DATA));
    CO_TRY(set_parse_index(out, options, size, path));
    return set_open_indexed(out);
}

/* A sample of a packed file is checked once, as in one file of all; what was fetched for this read
   alone, always. */
static bool set_is_right(const co_shard_set *s, const co_bytes *bytes, const co_buffer *buffer,
                         const co_shard_entry *e, uint64_t i)
{
    const bool once = s->verified && (!s->cache || bytes->at != buffer->at);
    const uint32_t bit = 1u << i % 32;

    if (once && atomic_load_explicit(&s->verified[i / 32], memory_order_relaxed) & bit)
        return true;
    if (s->index.checksums && libdeflate_crc32(0, bytes->at, bytes->n) != e->checksum)
        return false;
    if (once)
        (void)atomic_fetch_or_explicit(&s->verified[i / 32], bit, memory_order_relaxed);
    return true;
}

static co_status set_check(const co_shard_set *s, const co_bytes *bytes, const co_buffer *buffer,
                           const co_shard_entry *e, uint64_t i)
{
    char name[CO_SHARD_MAX_NAME + PATH_MAX];

    if (set_is_right(s, bytes, buffer, e, i))
        return CO_OK;
    co_shard_set_sample_name(s, name, sizeof(name), i);
    return co_fail(CO_E_DATA,
                   "%s: its checksum is not that of " CO_SHARD_INDEX_NAME
                   ": the shard is damaged or was changed; write it again",
                   name);
}

/* Local shards are read and not mapped: one that is cut short meanwhile is an error, not SIGBUS. */
static co_status set_read_file(co_bytes *out, const co_shard_set *s, co_buffer *buffer,
                               const co_shard_entry *e)
{
    uint8_t *bytes;

    CO_TRY(co_buffer_reserve(&bytes, buffer, e->size));
    CO_TRY(co_shard_files_read(bytes, &s->files, e->shard, e->offset, e->size));
    *out = (co_bytes){bytes, e->size};
    return CO_OK;
}

co_status co_shard_set_read(co_bytes *out, const co_shard_set *s, co_buffer *buffer, uint64_t i)
{
    const co_shard_entry e = co_shard_index_entry(&s->index, i);

    if (!s->cache) {
        CO_TRY(set_read_file(out, s, buffer, &e));
        return set_check(s, out, buffer, &e, i);
    }
    CO_TRY(co_shard_cache_read(out, s->cache, buffer, &e, false));
    if (set_is_right(s, out, buffer, &e, i))
        return CO_OK;
    CO_TRY(co_shard_cache_read(out, s->cache, buffer, &e, true));
    return set_check(s, out, buffer, &e, i);
}

bool co_shard_set_expect(const co_shard_set *s, const uint32_t *sample, uint64_t n)
{
    return s->cache && co_shard_cache_expect(s->cache, sample, n);
}

void co_shard_set_sample_name(const co_shard_set *s, char *out, size_t size, uint64_t i)
{
    const co_shard_entry e = co_shard_index_entry(&s->index, i);
    const char *shard = s->index.shard_name[e.shard], *name = co_shard_index_name(&s->index, i);

    if (name)
        snprintf(out, size, "%s/%s: %s", s->root, shard, name);
    else
        snprintf(out, size, "%s/%s: sample %llu", s->root, shard, (unsigned long long)i);
}

void co_shard_set_close(co_shard_set *s)
{
    co_shard_cache_close(s->cache);
    co_shard_index_free(&s->index);
    co_free(s->index_bytes);
    co_free(s->verified);
    co_shard_files_close(&s->files);
    *s = (co_shard_set){.walked = false};
}
