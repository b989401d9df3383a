/*
 * shm_window.c - memory that ranks share after they have started.
 *
 * It lies in a file in memory that has no name and was opened before the fork, so every rank holds
 * it and nobody else can. It only grows: windows live as long as a run.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm/shm_internal.h"

#define WINDOW_ALIGN ((size_t)2 << 20) /* offsets fit any page size */

void co_shm_window_open(co_shm *shm)
{
    shm->windows = memfd_create("cohort", MFD_CLOEXEC);
}

void co_shm_window_close(co_shm *shm)
{
    if (shm->windows >= 0)
        close(shm->windows);
}

int64_t co_shm_window_take(co_shm *shm, size_t bytes)
{
    shm_context *world = (shm_context *)co_shm_context_at(shm, 0);
    const int64_t size = (int64_t)((bytes + WINDOW_ALIGN - 1) / WINDOW_ALIGN * WINDOW_ALIGN);
    const int64_t offset = atomic_fetch_add(&world->windows, size);

    /* Takes the memory now: a page that is missing later would be a signal, not an error. */
    return shm->windows >= 0 && fallocate(shm->windows, 0, offset, (off_t)bytes) == 0 ? offset : -1;
}

co_status co_shm_window_map(void **base, const co_shm *shm, int64_t offset, size_t bytes)
{
    *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shm->windows, (off_t)offset);
    if (*base != MAP_FAILED)
        return CO_OK;
    *base = NULL;
    return co_fail(CO_E_NOMEM, "cannot map %zu bytes that ranks share: %s", bytes, strerror(errno));
}

void co_shm_window_unmap(void *base, size_t bytes)
{
    munmap(base, bytes);
}
