/*
 * region.c - the shared mapping: its layout, contexts in use, the first failure.
 *
 * Only touched pages use memory, so sizes are generous. Does not know operations.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/shm/internal.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/thread.h"

/* Long rings let a sender continue while the receiver's core is busy. */
#define REGION_RING_MAX   ((size_t)1 << 20)
#define REGION_RING_MIN   ((size_t)4 << 10)
#define REGION_RING_TOTAL ((size_t)64 << 20) /* per context, unless the minimum needs more */

static size_t region_round(size_t bytes)
{
    return (bytes + SHM_LINE - 1) / SHM_LINE * SHM_LINE;
}

static void region_lay_out(co_shm *shm)
{
    const size_t n = (size_t)shm->ranks;
    const size_t failure = region_round(sizeof(shm_failure) + (n + 1) * sizeof(co_comm_cause));

    shm->ring_bytes = REGION_RING_MAX;
    while (shm->ring_bytes > REGION_RING_MIN && shm->ring_bytes * n * n > REGION_RING_TOTAL)
        shm->ring_bytes /= 2;
    shm->ring_step = sizeof(shm_ring) + shm->ring_bytes;
    shm->watches_at = failure;
    shm->contexts = failure + region_round(n * sizeof(co_watch));
    shm->counters_at = region_round(sizeof(shm_context)) + failure;
    shm->slots_at = shm->counters_at + n * sizeof(shm_counters);
    shm->rings_at = shm->slots_at + n * SHM_SLOTS * sizeof(shm_slot);
    shm->context_size = shm->rings_at + n * n * shm->ring_step;
    shm->size = shm->contexts + SHM_CONTEXTS * shm->context_size;
}

/* Set the size of an empty file (it is sparse). A file of any other size belongs to another
   program. */
static bool region_size_file(const co_shm *shm)
{
    struct stat about;

    if (shm->file < 0)
        return true;
    if (fstat(shm->file, &about) != 0)
        return false;
    if (about.st_size == 0)
        return ftruncate(shm->file, (off_t)shm->size) == 0;
    errno = EINVAL;
    return (size_t)about.st_size == shm->size;
}

static co_status region_fill(co_shm *shm)
{
    const int flags = MAP_SHARED | MAP_NORESERVE | (shm->file < 0 ? MAP_ANONYMOUS : 0);

    if (region_size_file(shm))
        shm->base = co_map(shm->size, PROT_READ | PROT_WRITE, flags, shm->file);
    if (shm->base)
        return CO_OK;
    return co_fail(CO_E_NOMEM,
                   "cannot map %zu MiB for %d rank%s: %s; start fewer ranks, or raise the limit on "
                   "addresses (ulimit -v)",
                   shm->size >> 20, shm->ranks, co_plural((uint64_t)shm->ranks), strerror(errno));
}

co_status co_shm_map(co_shm **out, int ranks, int file)
{
    co_shm *shm;

    *out = NULL;
    if (ranks < 1 || ranks > SHM_MAX_RANKS)
        return co_fail(CO_E_USAGE, "%d ranks on one machine; give 1 to %d", ranks, SHM_MAX_RANKS);
    shm = co_calloc(1, sizeof(*shm));
    if (!shm)
        return CO_E_NOMEM;
    shm->ranks = ranks;
    shm->file = file;
    shm->oversubscribed = ranks > (int)sysconf(_SC_NPROCESSORS_ONLN);
    region_lay_out(shm);
    co_shm_window_open(shm);
    if (region_fill(shm) != CO_OK) {
        shm->file = -1;
        co_shm_destroy(shm);
        return CO_E_NOMEM;
    }
    atomic_store(&((shm_context *)co_shm_context_at(shm, 0))->taken, 1);
    *out = shm;
    return CO_OK;
}

int co_shm_file(void)
{
    struct rlimit limit;

    /* exceeding a limit on file sizes raises a signal */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        errno = EFBIG;
        return -1;
    }
#ifdef MFD_CLOEXEC
    return memfd_create("cohort", MFD_CLOEXEC);
#else
    errno = ENOSYS;
    return -1;
#endif
}

/* A file rather than an anonymous mapping: without overcommit (vm.overcommit_memory 2) all of an
   anonymous mapping would count, of a file only the pages touched. */
co_status co_shm_create(co_shm **out, int ranks)
{
    const int file = co_shm_file();
    const co_status st = co_shm_map(out, ranks, file);

    if (st != CO_OK && file >= 0)
        close(file);
    if (st == CO_OK)
        (*out)->oversubscribed = ranks > co_thread_cores();
    return st;
}

void co_shm_destroy(co_shm *shm)
{
    if (!shm)
        return;
    co_shm_window_close(shm);
    if (shm->base)
        munmap(shm->base, shm->size);
    if (shm->file >= 0)
        close(shm->file);
    co_free(shm);
}

co_watch *co_shm_watch(const co_shm *shm, int rank)
{
    return (co_watch *)(shm->base + shm->watches_at) + rank;
}

unsigned char *co_shm_context_at(const co_shm *shm, int context)
{
    return shm->base + shm->contexts + (size_t)context * shm->context_size;
}

shm_failure *co_shm_context_failure(const co_shm *shm, int context)
{
    return (shm_failure *)(co_shm_context_at(shm, context) + region_round(sizeof(shm_context)));
}

/* A free context is zero, except the data of slots and rings. */
static void region_clear(co_shm *shm, int context, int members)
{
    unsigned char *at = co_shm_context_at(shm, context);
    const size_t n = (size_t)members, head = region_round(sizeof(shm_context));

    memset(at + head, 0, shm->slots_at - head);
    for (size_t i = 0; i < n * SHM_SLOTS; i++)
        memset(at + shm->slots_at + i * sizeof(shm_slot), 0, offsetof(shm_slot, small));
    for (size_t i = 0; i < n * n; i++)
        memset(at + shm->rings_at + i * shm->ring_step, 0, sizeof(shm_ring));
}

int co_shm_context_take(co_shm *shm)
{
    for (int i = 1; i < SHM_CONTEXTS; i++) {
        shm_context *context = (shm_context *)co_shm_context_at(shm, i);
        uint32_t expected = 0;

        if (atomic_compare_exchange_strong(&context->taken, &expected, 1))
            return i;
    }
    return -1;
}

void co_shm_context_give_back(co_shm *shm, int context)
{
    atomic_store(&((shm_context *)co_shm_context_at(shm, context))->taken, 0);
}

void co_shm_context_leave(co_shm *shm, int context, int members)
{
    shm_context *head = (shm_context *)co_shm_context_at(shm, context);

    if (context == 0 || atomic_fetch_add(&head->left, 1) + 1 < (uint32_t)members)
        return;
    region_clear(shm, context, members);
    atomic_store(&head->left, 0);
    co_shm_context_give_back(shm, context);
}

void co_shm_set_failure(const co_shm *shm, shm_failure *failure, int rank, co_status status,
                        const char *text)
{
    uint32_t entry, none = 0;

    if (co_shm_failure(failure))
        return;
    entry = atomic_fetch_add_explicit(&failure->entries, 1, memory_order_relaxed);
    if (entry > (uint32_t)shm->ranks)
        return;
    co_comm_cause_set(&failure->cause[entry], rank, status, text);
    atomic_compare_exchange_strong_explicit(&failure->first, &none, entry + 1, memory_order_acq_rel,
                                            memory_order_acquire);
}

void co_shm_abort(co_shm *shm, int rank, co_status status, const char *cause)
{
    co_shm_set_failure(shm, co_shm_region_failure(shm), rank, status, cause);
}

co_status co_shm_cause(const co_shm *shm, int *rank, char *cause, size_t size)
{
    const co_comm_cause *first = co_shm_failure(co_shm_context_failure(shm, 0));

    if (!first)
        first = co_shm_failure(co_shm_region_failure(shm));
    if (!first)
        return CO_OK;
    if (rank)
        *rank = first->rank;
    if (cause && size) {
        strncpy(cause, first->text, size - 1);
        cause[size - 1] = '\0';
    }
    return first->status;
}
