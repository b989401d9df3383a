/*
 * shm_coll.c - collectives over shared memory, as three phases that advance on their own.
 *
 *   put     my chunk goes into my slot (once all have released what was in it)
 *   reduce  all have put: I combine my slice of the chunk over all ranks, in rank order
 *   get     all have reduced: I copy the result out and release the step
 *
 * Phases of later steps run ahead of earlier ones, across collectives too, as far as there are
 * slots. Small reductions and those without slices skip the middle: every rank combines all
 * chunks itself, in the same order, so the bits are the same everywhere.
 */
#include <string.h>

#include "comm/shm_internal.h"
#include "comm/tree.h"

#define COLL_CACHE_LINE 64

static bool coll_put(shm_comm *c);

void co_shm_coll_post(shm_comm *c, shm_request *request)
{
    const co_coll_args *args = &request->link.base.args;
    size_t parts = 1;

    request->descriptor = co_comm_descriptor(args, c->sequence++);
    request->coll = co_shm_coll_choose(args, args->count * request->esize);
    if (request->coll->blocks)
        parts = (size_t)c->base.size;
    else if (request->coll->parts)
        parts = (size_t)args->tree->most_parts;
    request->chunk = SHM_CHUNK / request->esize / parts;
    request->first = c->posted;
    request->steps = args->count ? (args->count - 1) / request->chunk + 1 : 1;
    c->posted += request->steps;
    if (c->last)
        c->last->link.next = &request->link;
    c->last = request;
    for (int phase = 0; phase < SHM_PHASES; phase++)
        if (!c->on[phase])
            c->on[phase] = request;
    while (coll_put(c))
        ;
}

/* The next step of a phase, and the next request when that was its last. */
static void coll_advance(shm_comm *c, int phase)
{
    shm_request *request = c->on[phase];

    if (++c->step[phase] < request->first + request->steps)
        return;
    c->on[phase] = (shm_request *)request->link.next;
    if (phase != SHM_GET)
        return;
    request->link.base.done = true;
    if (c->last == request)
        c->last = NULL;
}

static void coll_do(shm_comm *c, int phase, shm_step_fn fn)
{
    const shm_request *request = c->on[phase];
    const size_t count = request->link.base.args.count;
    const size_t offset = (size_t)(c->step[phase] - request->first) * request->chunk;

    if (fn && count)
        fn(&(shm_step){.c = c,
                       .request = request,
                       .args = &request->link.base.args,
                       .step = c->step[phase],
                       .offset = offset,
                       .n = count - offset < request->chunk ? count - offset : request->chunk,
                       .rank = c->base.rank,
                       .size = c->base.size});
}

static bool coll_slot_is_free(shm_comm *c)
{
    uint64_t released = UINT64_MAX;

    if (c->step[SHM_PUT] < c->free_until)
        return true;
    for (int p = 0; p < c->base.size; p++) {
        const uint64_t r =
            atomic_load_explicit(&co_shm_counters(c, p)->released, memory_order_acquire);

        released = r < released ? r : released;
    }
    c->free_until = released + SHM_SLOTS;
    return c->step[SHM_PUT] < c->free_until;
}

static bool coll_put(shm_comm *c)
{
    shm_request *request = c->on[SHM_PUT];
    shm_slot *slot;

    if (!request || !coll_slot_is_free(c))
        return false;
    slot = co_shm_slot(c, c->base.rank, c->step[SHM_PUT]);
    slot->descriptor = request->descriptor;
    coll_do(c, SHM_PUT, request->coll->put);
    atomic_store_explicit(&slot->step, c->step[SHM_PUT] + 1, memory_order_release);
    coll_advance(c, SHM_PUT);
    return true;
}

static co_status coll_compare(const shm_comm *c, const shm_request *request, int peer)
{
    const co_coll_descriptor *theirs = &co_shm_slot(c, peer, c->step[SHM_REDUCE])->descriptor;
    char a[CO_COMM_DESCRIBE_MAX], b[CO_COMM_DESCRIBE_MAX];

    if (memcmp(theirs, &request->descriptor, sizeof(*theirs)) == 0)
        return CO_OK;
    return co_fail(CO_E_MISMATCH, "rank %d calls %s where rank %d calls %s", peer,
                   co_comm_describe(a, sizeof(a), theirs), c->base.rank,
                   co_comm_describe(b, sizeof(b), &request->descriptor));
}

bool co_shm_coll_is_shared(const shm_comm *c, const shm_request *request, uint64_t step)
{
    if (!request->coll->reduce || !request->coll->small)
        return request->coll->reduce != NULL;
    for (int p = 0; p < c->base.size; p++)
        if (co_shm_slot(c, p, step)->out)
            return true;
    return false;
}

static co_status coll_reduce(shm_comm *c, bool *moved)
{
    shm_request *request = c->on[SHM_REDUCE];
    const uint64_t step = c->step[SHM_REDUCE];

    if (!request || step == c->step[SHM_PUT])
        return CO_OK;
    for (; c->arrived < c->base.size; c->arrived++) {
        const shm_slot *slot = co_shm_slot(c, c->arrived, step);

        if (atomic_load_explicit(&((shm_slot *)slot)->step, memory_order_acquire) != step + 1)
            return CO_OK;
        if (step == request->first)
            CO_TRY(coll_compare(c, request, c->arrived));
    }
    c->arrived = 0;
    if (co_shm_coll_is_shared(c, request, step)) {
        coll_do(c, SHM_REDUCE, request->coll->reduce);
        atomic_store_explicit(&co_shm_counters(c, c->base.rank)->reduced, step + 1,
                              memory_order_release);
    }
    coll_advance(c, SHM_REDUCE);
    *moved = true;
    return CO_OK;
}

/* Others have read the next slot when it was last used, so the lines that a small operation will
   write are theirs as well. They become this core's alone, all at once, before they are needed. */
static void coll_claim_next(const shm_comm *c, const shm_request *request)
{
    const char *slot = (const char *)co_shm_slot(c, c->base.rank, c->step[SHM_GET] + 1);
    const size_t bytes = request->link.base.args.count * request->esize;

    for (size_t at = 0; at < offsetof(shm_slot, small) + bytes; at += COLL_CACHE_LINE)
        __builtin_prefetch(slot + at, 1, 3);
}

static bool coll_get(shm_comm *c)
{
    shm_request *request = c->on[SHM_GET];
    const uint64_t step = c->step[SHM_GET];
    bool shared;

    if (!request || step == c->step[SHM_REDUCE])
        return false;
    shared = co_shm_coll_is_shared(c, request, step);
    for (; shared && c->collected < c->base.size; c->collected++)
        if (atomic_load_explicit(&co_shm_counters(c, c->collected)->reduced,
                                 memory_order_acquire) <= step)
            return false;
    c->collected = 0;
    coll_do(c, SHM_GET, request->coll->get);
    if (request->coll->small)
        coll_claim_next(c, request);
    atomic_store_explicit(&co_shm_counters(c, c->base.rank)->released, step + 1,
                          memory_order_release);
    coll_advance(c, SHM_GET);
    return true;
}

co_status co_shm_coll_progress(shm_comm *c)
{
    bool moved = c->on[SHM_GET] != NULL;

    while (moved) {
        moved = coll_put(c);
        CO_TRY(coll_reduce(c, &moved));
        moved = coll_get(c) || moved;
    }
    return CO_OK;
}

bool co_shm_coll_is_missing(const shm_comm *c, int rank)
{
    const uint64_t step = c->step[SHM_GET];
    shm_counters *counters = co_shm_counters(c, rank);

    if (c->step[SHM_REDUCE] > step)
        return atomic_load_explicit(&counters->reduced, memory_order_acquire) <= step;
    if (c->step[SHM_PUT] > step)
        return atomic_load_explicit(&co_shm_slot(c, rank, step)->step, memory_order_acquire) !=
               step + 1;
    return atomic_load_explicit(&counters->released, memory_order_acquire) + SHM_SLOTS <= step;
}
