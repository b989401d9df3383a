/*
 * window.c - memory that ranks share after they have started.
 *
 * It is a memfd without a name, so nobody else can access it. Each rank has mapped all of it, so
 * that offsets mean the same to all; what nobody has taken yet is not accessible, because reading a
 * page of a file in memory allocates it, and leak checkers read all they can. Offsets are never
 * reused; their memory is freed. Does not know what it is used for.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/shm/internal.h"
#include "core/mem.h"

#define WINDOW_ALIGN ((size_t)2 << 20) /* a multiple of any page size */
#define WINDOW_TIMES                                                                               \
    16 /* reserve addresses for this many times the machine's                                      \
          memory */
#define WINDOW_LINE   ((size_t)64)
#define WINDOW_HUGE   ((size_t)8 << 20) /* from here on huge pages waste little */
#define WINDOW_MIN_VA ((size_t)64 << 20)
#define WINDOW_SHARE  4 /* fraction of a limited address space to use */

static size_t window_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page / WINDOW_ALIGN * WINDOW_ALIGN : 0;
}

/* Size of the address range to try first. */
static size_t window_wanted(void)
{
    const size_t wanted = window_memory() * WINDOW_TIMES;
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / WINDOW_SHARE > wanted)
        return wanted;
    return (size_t)limit.rlim_cur / WINDOW_SHARE;
}

static bool window_map(co_shm *shm, size_t bytes)
{
    void *base = co_map(bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, shm->windows);

    if (!base)
        return false;
    shm->window_base = base;
    shm->window_bytes = bytes;
    return true;
}

void co_shm_window_open(co_shm *shm)
{
    shm->windows = co_shm_file();
    if (shm->windows < 0)
        return;
    for (size_t bytes = window_wanted(); bytes >= WINDOW_MIN_VA; bytes /= 2) {
        const size_t whole = bytes / WINDOW_ALIGN * WINDOW_ALIGN;

        if (ftruncate(shm->windows, (off_t)whole) == 0 && window_map(shm, whole))
            return;
    }
}

void co_shm_window_join(co_shm *shm, int file)
{
    struct stat about;

    co_shm_window_close(shm);
    shm->windows = file;
    if (file >= 0 && fstat(file, &about) == 0 && about.st_size > 0)
        (void)window_map(shm, (size_t)about.st_size);
}

void co_shm_window_close(co_shm *shm)
{
    if (shm->window_base)
        munmap(shm->window_base, shm->window_bytes);
    if (shm->windows >= 0)
        close(shm->windows);
    shm->window_base = NULL;
    shm->window_bytes = 0;
    atomic_store(&shm->window_open, 0);
    shm->windows = -1;
}

bool co_shm_window_has(const co_shm *shm, const void *data, size_t bytes)
{
    const uintptr_t base = (uintptr_t)shm->window_base, at = (uintptr_t)data;

    return base && at >= base && at - base < shm->window_bytes &&
           bytes <= shm->window_bytes - (at - base);
}

int64_t co_shm_window_take(co_shm *shm, size_t bytes)
{
    shm_context *world = (shm_context *)co_shm_context_at(shm, 0);
    int64_t offset = atomic_load(&world->windows);

    if (bytes > window_memory())
        return SHM_NO_MEMORY;
    do {
        if ((size_t)offset > shm->window_bytes || bytes > shm->window_bytes - (size_t)offset)
            return SHM_NO_ADDRESSES;
    } while (!atomic_compare_exchange_weak(
        &world->windows, &offset,
        offset + (int64_t)((bytes + WINDOW_ALIGN - 1) / WINDOW_ALIGN * WINDOW_ALIGN)));
    return offset;
}

void co_shm_window_admit(co_shm *shm)
{
    const shm_context *world = (const shm_context *)co_shm_context_at(shm, 0);
    const size_t open = atomic_load(&shm->window_open);
    const size_t end = (size_t)atomic_load(&world->windows);

    if (end > open && mprotect(shm->window_base + open, end - open, PROT_READ | PROT_WRITE) == 0)
        atomic_store(&shm->window_open, end);
}

/* Allocate now, because a page that is missing later would be a signal instead of an error. Pages
   are placed on the calling core's NUMA node. */
bool co_shm_window_fill(const co_shm *shm, void *base, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t at = (size_t)((unsigned char *)base - shm->window_base) / page * page;
    const size_t end = (size_t)((unsigned char *)base - shm->window_base) + bytes;

    if (bytes == 0)
        return true;
    if (bytes >= WINDOW_HUGE)
        (void)madvise(shm->window_base + at, end - at, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    if (madvise(shm->window_base + at, (end - at + page - 1) / page * page, MADV_POPULATE_WRITE) ==
        0)
        return true;
    if (errno != EINVAL)
        return false;
#endif
    return posix_fallocate(shm->windows, (off_t)at, (off_t)(end - at)) == 0;
}

void co_shm_window_empty(void *base, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    (void)madvise(base, (bytes + page - 1) / page * page, MADV_REMOVE);
}

/* The count of members that have released the window follows it. */
static size_t window_body(size_t bytes)
{
    return (bytes + WINDOW_LINE - 1) / WINDOW_LINE * WINDOW_LINE;
}

size_t co_shm_window_size(size_t bytes)
{
    return window_body(bytes) + WINDOW_LINE;
}

void co_shm_window_leave(void *base, size_t bytes, int members)
{
    _Atomic int *left = (_Atomic int *)(void *)((unsigned char *)base + window_body(bytes));

    if (atomic_fetch_add(left, 1) + 1 == members)
        co_shm_window_empty(base, co_shm_window_size(bytes));
}
