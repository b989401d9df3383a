/*
 * shard_cache.c - blocks of remote shards in local files.
 *
 * A file has the bytes of a shard, of which those that were never fetched are holes, and after them
 * a byte for each block that says whether it is there. All processes map it. A block is fetched by
 * whoever needs it first, under a lock of its bytes, which ends with the process that holds it.
 * Nothing is trusted for being there: shard_set.c holds samples against the checksums of the index.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"
#include "data/shard_cache_internal.h"

#define CACHE_BLOCK      ((uint64_t)256 << 10)
#define CACHE_PAGE       ((uint64_t)64 << 10) /* a multiple of any page's size */
#define CACHE_MOST_AHEAD ((uint64_t)1 << 27)  /* blocks of a set that is fetched ahead: 32 TiB */

enum { CACHE_ABSENT, CACHE_PRESENT, CACHE_DAMAGED /* reserved, to be fetched again */ };

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

/* ---- files ---- */

static co_status cache_path(char out[PATH_MAX], const co_shard_cache *c, uint32_t shard)
{
    if (snprintf(out, PATH_MAX, "%s/%06u.blocks", c->folder.path, shard) >= PATH_MAX)
        return co_fail(CO_E_IO, "%s: the path is too long", c->folder.path);
    return CO_OK;
}

static struct flock cache_region(short type, uint64_t offset, uint64_t n)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)n};
}

/* F_WRLCK: wait for the lock of some bytes of a file; F_UNLCK: end it, as closing the file does. */
static co_status cache_lock(int fd, short type, uint64_t offset, uint64_t n, const char *path)
{
    struct flock lock = cache_region(type, offset, n);

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

/* Blocks that are locked. */
typedef struct cache_locked {
    int fd;
    uint32_t shard;
    const atomic_bool *cancel; /* of the request; NULL: it is waited for */
} cache_locked;

/* Fetch some blocks. *kept false: there is no room for them. */
static co_status cache_fetch_run(bool *kept, const co_shard_cache *c, const cache_locked *locked,
                                 uint64_t first, uint64_t end)
{
    const uint32_t shard = locked->shard;
    const uint64_t size = co_shard_index_shard_size(c->index, shard);
    const uint64_t offset = first * CACHE_BLOCK;
    const uint64_t n = (end * CACHE_BLOCK < size ? end * CACHE_BLOCK : size) - offset;
    atomic_uchar *state = cache_states(c, shard);
    char url[PATH_MAX];
    const co_range_request request = {url, offset, (size_t)n, size, locked->cancel};
    uint8_t *bytes;
    co_status st;

    *kept = cache_reserve(c, state, first, end);
    if (!*kept)
        return CO_OK;
    CO_TRY(co_shard_cache_address(url, c, c->index->shard_name[shard]));
    bytes = co_calloc((size_t)n, 1);
    if (!bytes)
        return CO_E_NOMEM;
    st = co_range_read(bytes, NULL, c->range, &request);
    if (st == CO_OK)
        *kept = cache_put(locked->fd, bytes, n, offset);
    co_free(bytes);
    for (uint64_t b = first; b < end && st == CO_OK && *kept; b++)
        atomic_store_explicit(&state[b], CACHE_PRESENT, memory_order_release);
    return st;
}

/* Whoever comes second finds the blocks there. */
static co_status cache_fetch_locked(bool *kept, const co_shard_cache *c, const cache_locked *locked,
                                    uint64_t first, uint64_t end)
{
    *kept = true;
    for (uint64_t b = first; b < end && *kept;) {
        uint64_t stop = b;

        while (stop < end && (stop - b) * CACHE_BLOCK < CO_CACHE_MOST &&
               !cache_has(c, locked->shard, stop, stop + 1))
            stop++;
        if (stop == b) {
            b++;
            continue;
        }
        CO_TRY(cache_fetch_run(kept, c, locked, b, stop));
        b = stop;
    }
    return CO_OK;
}

/* Each lock has a file description of its own, so that threads of a process exclude each other.
   What is wrong with the file itself costs time, and does not end a run. */
static co_status cache_fetch(bool *kept, const co_shard_cache *c, uint32_t shard, uint64_t first,
                             uint64_t end)
{
    cache_locked locked = {.shard = shard};
    char path[PATH_MAX];
    co_status st = CO_OK;

    *kept = false;
    if (cache_path(path, c, shard) != CO_OK || co_open_private(&locked.fd, path) != CO_OK)
        return CO_OK;
    if (cache_lock(locked.fd, F_WRLCK, first * CACHE_BLOCK, (end - first) * CACHE_BLOCK, path) ==
        CO_OK)
        st = cache_fetch_locked(kept, c, &locked, first, end);
    close(locked.fd);
    return st;
}

/* ---- ahead ---- */

/* What another thread or process is fetching is left to it. */
static bool cache_fetch_ahead(void *arg, const co_shard_run *run, const atomic_bool *cancel)
{
    struct flock lock =
        cache_region(F_WRLCK, run->first * CACHE_BLOCK, (run->end - run->first) * CACHE_BLOCK);
    co_shard_cache *c = arg;
    cache_locked locked = {.shard = run->shard, .cancel = cancel};
    char path[PATH_MAX];
    co_status st = CO_OK;
    bool kept = true;

    if (atomic_load(&c->full) || cache_has(c, run->shard, run->first, run->end))
        return true;
    if (cache_path(path, c, run->shard) != CO_OK || co_open_private(&locked.fd, path) != CO_OK)
        return false;
    if (fcntl(locked.fd, F_OFD_SETLK, &lock) == 0)
        st = cache_fetch_locked(&kept, c, &locked, run->first, run->end);
    close(locked.fd);
    if (!kept)
        atomic_store(&c->full, true);
    return st == CO_OK;
}

bool co_shard_cache_expect(co_shard_cache *c, const uint32_t *sample, uint64_t n)
{
    if (!c->ahead)
        return false;
    if (n == 0)
        co_shard_ahead_stop(c->ahead);
    for (uint64_t i = 0; i < n; i++) {
        const co_shard_entry e = co_shard_index_entry(c->index, sample[i]);

        if (atomic_load(&c->full) || cache_map(c, e.shard) != CO_OK)
            return false;
        for (uint64_t b = e.offset / CACHE_BLOCK; b < cache_blocks(e.offset + e.size); b++)
            if (!cache_has(c, e.shard, b, b + 1))
                co_shard_ahead_add(c->ahead, c->first_block[e.shard] + b, e.shard, b);
    }
    return true;
}

static co_status cache_start_ahead(co_shard_cache *c)
{
    co_shard_ahead_options options = {.threads = c->prefetch, .fetch = cache_fetch_ahead, .arg = c};
    uint64_t blocks = 0;

    if (c->prefetch == 0)
        return CO_OK;
    c->first_block = co_calloc(c->index->shards, sizeof(*c->first_block));
    if (!c->first_block)
        return CO_E_NOMEM;
    for (uint32_t k = 0; k < c->index->shards; k++) {
        c->first_block[k] = blocks;
        blocks += cache_blocks(co_shard_index_shard_size(c->index, k)); /* was checked */
    }
    if (blocks > CACHE_MOST_AHEAD)
        return CO_OK;
    options.blocks = blocks;
    return co_shard_ahead_create(&c->ahead, &options);
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
    CO_TRY(cache_start_ahead(c));
    co_range_rest(c->range);
    return co_cache_folder_make_room(&c->folder, wanted);
}

/* ---- samples ---- */

/* The sample alone, kept nowhere. */
static co_status cache_direct(co_bytes *out, const co_shard_cache *c, co_buffer *buffer,
                              const co_shard_entry *e)
{
    char url[PATH_MAX];
    const co_range_request request = {url, e->offset, e->size,
                                      co_shard_index_shard_size(c->index, e->shard), NULL};
    uint8_t *bytes;

    CO_TRY(co_shard_cache_address(url, c, c->index->shard_name[e->shard]));
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
    co_shard_ahead_destroy(c->ahead);
    co_free(c->first_block);
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
