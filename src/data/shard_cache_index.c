/* shard_cache_index.c - opens a cache of remote shards: the index, fetched or as it is kept. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/sha256.h"
#include "data/shard_cache_internal.h"

#define CACHE_MAX_INDEX ((uint64_t)8 << 30)

co_status co_shard_cache_address(char out[PATH_MAX], const co_shard_cache *c, const char *name)
{
    if (snprintf(out, PATH_MAX, "%s/%s", c->url, name) >= PATH_MAX)
        return co_fail(CO_E_USAGE, "%s: the address is too long", c->url);
    return CO_OK;
}

/* A set's name in the cache: the same for the same index at the same address. */
static void cache_identify(char id[CO_CACHE_ID], const char *url, const uint8_t head[CO_SHARD_HEAD])
{
    co_sha256 hash;
    char hex[65];

    co_sha256_begin(&hash);
    co_sha256_add(&hash, url, strlen(url) + 1);
    co_sha256_add(&hash, head, CO_SHARD_HEAD);
    co_sha256_end(hex, &hash);
    memcpy(id, hex, CO_CACHE_ID - 1);
    id[CO_CACHE_ID - 1] = '\0';
}

/* As much memory as has come, not as much as a header claims. */
static co_status cache_fetch_index(uint8_t **out, const co_shard_cache *c, const char *url,
                                   uint64_t size)
{
    uint8_t *bytes = NULL;

    for (uint64_t at = 0; at < size;) {
        const uint64_t n = size - at < CO_CACHE_MOST ? size - at : CO_CACHE_MOST;
        uint8_t *more = co_realloc(bytes, (size_t)(at + n), 1);
        const co_range_request request = {url, at, (size_t)n, size, NULL};
        const co_status st = more ? co_range_read(more + at, NULL, c->range, &request) : CO_E_NOMEM;

        if (st != CO_OK) {
            co_free(more ? more : bytes);
            return st;
        }
        bytes = more;
        at += n;
    }
    *out = bytes;
    return CO_OK;
}

static co_status cache_keep_index(const co_shard_cache *c, const uint8_t *bytes, size_t size)
{
    char path[PATH_MAX + 16];
    co_atomic_file *file;

    snprintf(path, sizeof(path), "%s/index", c->folder.path);
    CO_TRY(co_atomic_open(&file, path));
    if (fchmod(fileno(co_atomic_stream(file)), 0600) == 0 &&
        fwrite(bytes, 1, size, co_atomic_stream(file)) == size)
        return co_atomic_commit(file);
    co_atomic_discard(file);
    return CO_E_IO;
}

/* The index as it is kept, if it is that of `head` and whole. */
static bool cache_find_index(uint8_t **out, const co_shard_cache *c, const uint8_t *head,
                             uint64_t size)
{
    const co_open_rule rule = {.status = CO_E_IO, .own = true, .max = CACHE_MAX_INDEX};
    char path[PATH_MAX + 16];
    co_shard_index index;
    size_t n = 0;
    bool good;

    snprintf(path, sizeof(path), "%s/index", c->folder.path);
    if (!co_fs_exists(path) || co_fs_read_as(out, &n, path, &rule) != CO_OK)
        return false;
    good = n == size && memcmp(*out, head, CO_SHARD_HEAD) == 0 &&
           co_shard_index_parse(&index, *out, n, path) == CO_OK;
    if (good)
        co_shard_index_free(&index);
    else
        co_free(*out);
    return good;
}

static co_status cache_take_index(uint8_t **bytes, size_t *size, bool *missing, co_shard_cache *c,
                                  const co_shard_cache_options *o)
{
    uint8_t head[CO_SHARD_HEAD];
    char url[PATH_MAX], id[CO_CACHE_ID];
    co_range_request request = {url, 0, CO_SHARD_HEAD, 0, NULL};
    co_range_answer answer = {.missing = false};
    uint64_t whole;
    co_status st;

    CO_TRY(co_shard_cache_address(url, c, CO_SHARD_INDEX_NAME));
    st = co_range_read(head, &answer, c->range, &request);
    *missing = answer.missing;
    if (st != CO_OK)
        return st;
    CO_TRY(co_shard_index_size(&whole, head, url));
    if (whole != answer.total || whole > CACHE_MAX_INDEX)
        return co_fail(CO_E_DATA, "%s: has %llu bytes, its header says %llu", url,
                       (unsigned long long)answer.total, (unsigned long long)whole);
    cache_identify(id, c->url, head);
    CO_TRY(co_cache_folder_open(&c->folder, o->folder, id, o->limit));
    *size = (size_t)whole;
    if (cache_find_index(bytes, c, head, whole))
        return CO_OK;
    CO_TRY(cache_fetch_index(bytes, c, url, whole));
    (void)cache_keep_index(c, *bytes, *size); /* or it is fetched once more */
    return CO_OK;
}

co_status co_shard_cache_open(co_shard_cache **out, uint8_t **bytes, size_t *size, bool *missing,
                              const co_shard_cache_options *options)
{
    co_shard_cache *c = co_calloc(1, sizeof(*c));
    co_status st;

    *missing = false;
    if (!c)
        return CO_E_NOMEM;
    c->folder.lock = -1;
    c->prefetch = options->prefetch;
    pthread_mutex_init(&c->lock, NULL);
    snprintf(c->url, sizeof(c->url), "%s", options->url);
    st = co_range_create(&c->range, options->retry_s);
    if (st == CO_OK)
        st = cache_take_index(bytes, size, missing, c, options);
    if (st != CO_OK) {
        co_shard_cache_close(c);
        return st;
    }
    *out = c;
    return CO_OK;
}
