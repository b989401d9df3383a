/*
 * shard_cache.c - blocks of remote shards in local files.
 *
 * A file has the bytes of a shard, of which those that were never fetched are holes, and after them
 * a byte for each block that says whether it is there. All processes map it. A block is fetched by
 * whoever needs it first, under a lock of its bytes, which ends with the process that holds it.
 * Nothing is trusted for being there: shard_set.c holds samples against the checksums of the index.
 */
#include "data/shard_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/sha256.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"
#include "data/cache_folder.h"
#include "fetch/range.h"

#define CACHE_BLOCK     ((uint64_t)256 << 10)
#define CACHE_MOST      ((uint64_t)4 << 20)  /* bytes of a request */
#define CACHE_PAGE      ((uint64_t)64 << 10) /* a multiple of any page's size */
#define CACHE_MAX_INDEX ((uint64_t)8 << 30)

enum { CACHE_ABSENT, CACHE_PRESENT, CACHE_DAMAGED /* reserved, to be fetched again */ };

struct co_shard_cache {
    char url[PATH_MAX];
    co_range *range; /* owned */
    co_cache_folder folder;
    const co_shard_index *index;
    _Atomic(uint8_t *) *map; /* owned: (shards) mappings of files, NULL until they are needed */
    pthread_mutex_t lock;    /* of making one */
    atomic_bool warned;
};

static uint64_t cache_round(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static uint64_t cache_blocks(uint64_t size)
{
    return (size + CACHE_BLOCK - 1) / CACHE_BLOCK;
}

/* Where the states of the blocks are in a shard's file. */
static uint64_t cache_states_at(uint64_t size)
{
    return cache_round(size, CACHE_PAGE);
}

static uint64_t cache_file_size(uint64_t size)
{
    return cache_states_at(size) + cache_round(cache_blocks(size), CACHE_PAGE);
}

static atomic_uchar *cache_states(const co_shard_cache *c, uint32_t shard)
{
    return (atomic_uchar *)(atomic_load(&c->map[shard]) +
                            cache_states_at(co_shard_index_shard_size(c->index, shard)));
}

static co_status cache_address(char out[PATH_MAX], const co_shard_cache *c, const char *name)
{
    if (snprintf(out, PATH_MAX, "%s/%s", c->url, name) >= PATH_MAX)
        return co_fail(CO_E_USAGE, "%s: the address is too long", c->url);
    return CO_OK;
}

/* ---- the index ---- */

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
        const uint64_t n = size - at < CACHE_MOST ? size - at : CACHE_MOST;
        uint8_t *more = co_realloc(bytes, (size_t)(at + n), 1);
        const co_range_request request = {url, at, (size_t)n, size};
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
    co_range_request request = {url, 0, CO_SHARD_HEAD, 0};
    co_range_answer answer = {.missing = false};
    uint64_t whole;
    co_status st;

    CO_TRY(cache_address(url, c, CO_SHARD_INDEX_NAME));
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

co_status co_shard_cache_start(co_shard_cache *c, const co_shard_index *index)
{
    uint64_t wanted = 0;

    c->index = index;
    c->map = co_calloc(index->shards, sizeof(*c->map));
    if (!c->map)
        return CO_E_NOMEM;
    for (uint32_t k = 0; k < index->shards; k++) {
        const uint64_t size = co_shard_index_shard_size(index, k);

        if (size > INT64_MAX / 4 || wanted > UINT64_MAX / 4)
            return co_fail(CO_E_DATA, "%s: its shards are too large", c->url);
        wanted += cache_file_size(size);
    }
    co_range_rest(c->range);
    return co_cache_folder_make_room(&c->folder, wanted);
}

/* ---- files ---- */

static co_status cache_path(char out[PATH_MAX], const co_shard_cache *c, uint32_t shard)
{
    if (snprintf(out, PATH_MAX, "%s/%06u.blocks", c->folder.path, shard) >= PATH_MAX)
        return co_fail(CO_E_IO, "%s: the path is too long", c->folder.path);
    return CO_OK;
}

/* F_WRLCK: wait for the lock of some bytes of a file; F_UNLCK: end it, as closing the file does. */
static co_status cache_lock(int fd, short type, uint64_t offset, uint64_t n, const char *path)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)n};

    while (fcntl(fd, F_OFD_SETLKW, &lock) != 0)
        if (errno != EINTR)
            return co_fail(CO_E_IO, "%s: cannot lock: %s", path, strerror(errno));
    return CO_OK;
}

static bool cache_put(int fd, const uint8_t *bytes, uint64_t n, uint64_t offset)
{
    for (uint64_t at = 0; at < n;) {
        const ssize_t got = pwrite(fd, bytes + at, (size_t)(n - at), (off_t)(offset + at));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += (uint64_t)got;
    }
    return true;
}

/* The states get their room on the disk at once: they are written through the mapping, where a full
   disk would end the process. */
static co_status cache_size_file(int fd, uint64_t size, const char *path)
{
    static const uint8_t zeros[4096];
    const uint64_t whole = cache_file_size(size);
    struct stat info;

    if (fstat(fd, &info) != 0)
        return co_fail(CO_E_IO, "%s: %s", path, strerror(errno));
    if ((uint64_t)info.st_size == whole)
        return CO_OK;
    if (info.st_size != 0)
        return co_fail(CO_E_IO, "%s: is no file of this cache; remove it", path);
    for (uint64_t at = cache_states_at(size); at < whole; at += sizeof(zeros))
        if (!cache_put(fd, zeros, sizeof(zeros), at)) {
            (void)ftruncate(fd, 0);
            return co_fail(CO_E_IO, "%s: cannot write: %s", path, strerror(errno));
        }
    return CO_OK;
}

static co_status cache_map_file(co_shard_cache *c, uint32_t shard)
{
    const uint64_t size = co_shard_index_shard_size(c->index, shard);
    char path[PATH_MAX];
    uint8_t *map = NULL;
    co_status st;
    int fd;

    CO_TRY(cache_path(path, c, shard));
    CO_TRY(co_open_private(&fd, path));
    st = cache_lock(fd, F_WRLCK, 0, 1, path);
    if (st == CO_OK)
        st = cache_size_file(fd, size, path);
    (void)cache_lock(fd, F_UNLCK, 0, 1, path); /* a mapping would hold it */
    if (st == CO_OK) {
        map = co_map((size_t)cache_file_size(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd);
        if (!map)
            st = co_fail(CO_E_IO, "%s: cannot map the file: %s", path, strerror(errno));
    }
    close(fd);
    if (map) {
        (void)mprotect(map, (size_t)cache_states_at(size), PROT_READ);
        atomic_store(&c->map[shard], map);
    }
    return st;
}

static co_status cache_map(co_shard_cache *c, uint32_t shard)
{
    co_status st = CO_OK;

    if (atomic_load(&c->map[shard]))
        return CO_OK;
    pthread_mutex_lock(&c->lock);
    if (!atomic_load(&c->map[shard]))
        st = cache_map_file(c, shard);
    pthread_mutex_unlock(&c->lock);
    return st;
}

/* ---- blocks ---- */

static bool cache_has(const co_shard_cache *c, uint32_t shard, uint64_t first, uint64_t end)
{
    const atomic_uchar *state = cache_states(c, shard);

    for (uint64_t b = first; b < end; b++)
        if (atomic_load_explicit(&state[b], memory_order_acquire) != CACHE_PRESENT)
            return false;
    return true;
}

/* Room for the blocks that had none yet. */
static bool cache_reserve(const co_shard_cache *c, atomic_uchar *state, uint64_t first,
                          uint64_t end)
{
    for (uint64_t b = first; b < end; b++) {
        if (atomic_load(&state[b]) != CACHE_ABSENT)
            continue;
        if (!co_cache_folder_reserve(&c->folder, CACHE_BLOCK))
            return false;
        atomic_store(&state[b], CACHE_DAMAGED);
    }
    return true;
}

/* Fetch some blocks, which are locked. *kept false: there is no room for them. */
static co_status cache_fetch_run(bool *kept, const co_shard_cache *c, uint32_t shard, int fd,
                                 uint64_t first, uint64_t end)
{
    const uint64_t size = co_shard_index_shard_size(c->index, shard);
    const uint64_t offset = first * CACHE_BLOCK;
    const uint64_t n = (end * CACHE_BLOCK < size ? end * CACHE_BLOCK : size) - offset;
    atomic_uchar *state = cache_states(c, shard);
    char url[PATH_MAX];
    const co_range_request request = {url, offset, (size_t)n, size};
    uint8_t *bytes;
    co_status st;

    *kept = cache_reserve(c, state, first, end);
    if (!*kept)
        return CO_OK;
    CO_TRY(cache_address(url, c, c->index->shard_name[shard]));
    bytes = co_calloc((size_t)n, 1);
    if (!bytes)
        return CO_E_NOMEM;
    st = co_range_read(bytes, NULL, c->range, &request);
    if (st == CO_OK)
        *kept = cache_put(fd, bytes, n, offset);
    co_free(bytes);
    for (uint64_t b = first; b < end && st == CO_OK && *kept; b++)
        atomic_store_explicit(&state[b], CACHE_PRESENT, memory_order_release);
    return st;
}

/* Whoever comes second finds the blocks there. */
static co_status cache_fetch_locked(bool *kept, const co_shard_cache *c, uint32_t shard, int fd,
                                    uint64_t first, uint64_t end)
{
    *kept = true;
    for (uint64_t b = first; b < end && *kept;) {
        uint64_t stop = b;

        while (stop < end && (stop - b) * CACHE_BLOCK < CACHE_MOST &&
               !cache_has(c, shard, stop, stop + 1))
            stop++;
        if (stop == b) {
            b++;
            continue;
        }
        CO_TRY(cache_fetch_run(kept, c, shard, fd, b, stop));
        b = stop;
    }
    return CO_OK;
}

/* Each lock has a file description of its own, so that threads of a process exclude each other.
   What is wrong with the file itself costs time, and does not end a run. */
static co_status cache_fetch(bool *kept, const co_shard_cache *c, uint32_t shard, uint64_t first,
                             uint64_t end)
{
    char path[PATH_MAX];
    co_status st = CO_OK;
    int fd;

    *kept = false;
    if (cache_path(path, c, shard) != CO_OK || co_open_private(&fd, path) != CO_OK)
        return CO_OK;
    if (cache_lock(fd, F_WRLCK, first * CACHE_BLOCK, (end - first) * CACHE_BLOCK, path) == CO_OK)
        st = cache_fetch_locked(kept, c, shard, fd, first, end);
    close(fd);
    return st;
}

/* The sample alone, kept nowhere. */
static co_status cache_direct(co_bytes *out, const co_shard_cache *c, co_buffer *buffer,
                              const co_shard_entry *e)
{
    char url[PATH_MAX];
    const co_range_request request = {url, e->offset, e->size,
                                      co_shard_index_shard_size(c->index, e->shard)};
    uint8_t *bytes;

    CO_TRY(cache_address(url, c, c->index->shard_name[e->shard]));
    CO_TRY(co_buffer_reserve(&bytes, buffer, e->size));
    CO_TRY(co_range_read(bytes, NULL, c->range, &request));
    *out = (co_bytes){bytes, e->size};
    return CO_OK;
}

static void cache_warn(co_shard_cache *c, const char *why)
{
    if (!atomic_exchange(&c->warned, true))
        co_log(CO_LOG_WARN, "%s; samples that are not kept are fetched each time", why);
}

static void cache_forget(atomic_uchar *state)
{
    unsigned char present = CACHE_PRESENT;

    (void)atomic_compare_exchange_strong(state, &present, CACHE_DAMAGED);
}

co_status co_shard_cache_read(co_bytes *out, co_shard_cache *c, co_buffer *buffer,
                              const co_shard_entry *e, bool again)
{
    const uint64_t first = e->offset / CACHE_BLOCK;
    const uint64_t end = cache_blocks(e->offset + e->size);
    bool kept = true;

    if (cache_map(c, e->shard) != CO_OK) {
        cache_warn(c, co_error_message());
        return cache_direct(out, c, buffer, e);
    }
    if (again) {
        for (uint64_t b = first; b < end; b++)
            cache_forget(&cache_states(c, e->shard)[b]);
        return cache_direct(out, c, buffer, e);
    }
    if (!cache_has(c, e->shard, first, end))
        CO_TRY(cache_fetch(&kept, c, e->shard, first, end));
    if (!kept) {
        cache_warn(c, "data.cache: no room (data.cache_limit, or the disk is full), or it cannot "
                      "be written to");
        return cache_direct(out, c, buffer, e);
    }
    *out = (co_bytes){atomic_load(&c->map[e->shard]) + e->offset, e->size};
    return CO_OK;
}

void co_shard_cache_close(co_shard_cache *c)
{
    if (!c)
        return;
    for (uint32_t k = 0; c->map && k < c->index->shards; k++)
        if (atomic_load(&c->map[k]))
            munmap(atomic_load(&c->map[k]),
                   (size_t)cache_file_size(co_shard_index_shard_size(c->index, k)));
    co_free(c->map);
    co_cache_folder_close(&c->folder);
    co_range_destroy(c->range);
    pthread_mutex_destroy(&c->lock);
    co_free(c);
}
