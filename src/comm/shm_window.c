/*
 * shm_window.c - memory that ranks share after they have started.
 *
 * It lies in a file in memory that has no name and was opened before the fork, so every rank holds
 * it and nobody else can. It only grows: windows live as long as a run. Ranks that are threads of
 * one process share one mapping, which goes with the last of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm/shm_internal.h"
#include "core/mem.h"

#define WINDOW_ALIGN ((size_t)2 << 20) /* offsets fit any page size */

/* A window as this process sees it. */
typedef struct shm_mapping {
    int64_t offset;
    void *base; /* owned */
    int users;
    struct shm_mapping *next;
} shm_mapping;

void co_shm_window_open(co_shm *shm)
{
    shm->windows = memfd_create("cohort", MFD_CLOEXEC);
    pthread_mutex_init(&shm->mapping_lock, NULL);
}

void co_shm_window_close(co_shm *shm)
{
    pthread_mutex_destroy(&shm->mapping_lock);
    if (shm->windows >= 0)
        close(shm->windows);
}

/* The file may grow until the machine has nothing left for anyone. */
static bool window_fits(size_t bytes)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 && bytes / (size_t)page < (size_t)pages;
}

int64_t co_shm_window_take(co_shm *shm, size_t bytes)
{
    shm_context *world = (shm_context *)co_shm_context_at(shm, 0);
    int64_t offset;

    if (shm->windows < 0 || !window_fits(bytes))
        return -1;
    offset = atomic_fetch_add(&world->windows,
                              (int64_t)((bytes + WINDOW_ALIGN - 1) / WINDOW_ALIGN * WINDOW_ALIGN));
    /* Takes the memory now: a page that is missing later would be a signal, not an error. */
    return fallocate(shm->windows, 0, offset, (off_t)bytes) == 0 ? offset : -1;
}

static co_status window_map_new(shm_mapping **out, co_shm *shm, int64_t offset, size_t bytes)
{
    shm_mapping *mapping = co_calloc(1, sizeof(*mapping));

    if (!mapping)
        return CO_E_NOMEM;
    mapping->offset = offset;
    mapping->base =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shm->windows, (off_t)offset);
    if (mapping->base == MAP_FAILED) {
        co_free(mapping);
        return co_fail(CO_E_NOMEM, "cannot map %zu bytes that ranks share: %s", bytes,
                       strerror(errno));
    }
    mapping->next = shm->mappings;
    shm->mappings = *out = mapping;
    return CO_OK;
}

co_status co_shm_window_map(void **base, co_shm *shm, int64_t offset, size_t bytes)
{
    shm_mapping *mapping;
    co_status st = CO_OK;

    pthread_mutex_lock(&shm->mapping_lock);
    for (mapping = shm->mappings; mapping && mapping->offset != offset;)
        mapping = mapping->next;
    if (!mapping)
        st = window_map_new(&mapping, shm, offset, bytes);
    if (st == CO_OK) {
        mapping->users++;
        *base = mapping->base;
    }
    pthread_mutex_unlock(&shm->mapping_lock);
    return st;
}

void co_shm_window_unmap(co_shm *shm, void *base, size_t bytes)
{
    shm_mapping **link, *mapping;

    pthread_mutex_lock(&shm->mapping_lock);
    for (link = &shm->mappings; *link && (*link)->base != base;)
        link = &(*link)->next;
    mapping = *link;
    if (mapping && --mapping->users == 0) {
        *link = mapping->next;
        munmap(base, bytes);
        co_free(mapping);
    }
    pthread_mutex_unlock(&shm->mapping_lock);
}
