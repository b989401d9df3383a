/*
 * collectives.c - collectives over shared memory, in three phases that advance independently.
 *
 *   put     copy my chunk into my slot (once all ranks have released the slot)
 *   reduce  when all have put: combine my slice of the chunk over all ranks, in rank order
 *   get     when all have reduced: copy the result out and release the step
 *
 * Phases of later steps may run ahead of earlier ones, also across collectives, as far as there are
 * slots. Small reductions and operations without slices skip the reduce phase: every rank combines
 * all chunks itself, in the same order, so the bits are the same everywhere.
 *
 * A blocking operation of one step with none pending before it runs all phases in one go, since for
 * small messages the bookkeeping takes longer than the data. Other ranks see no difference. If they
 * are late, the rest is left to the phases.
 */
#include <string.h>

#include "comm/shm/internal.h"
#include "comm/tree.h"

#define COLL_LINE       64
#define COLL_LOOKS      1000 /* polls for other ranks before the general path takes over */
#define COLL_FAST_LOOKS 200  /* of these, polls without a pause instruction */

static bool coll_put(shm_comm *c);

/* Elements per step. */
static size_t coll_chunk(const shm_comm *c, const shm_request *request)
{
    const co_coll_args *args = &request->link.base.args;
    size_t all = SHM_CHUNK / request->esize;

    if (request->coll->blocks)
        all /= (size_t)c->base.size;
    return request->coll->parts ? all / (size_t)args->tree->most_parts : all;
}

/* Elements that the steps go over. */
static size_t coll_span(const shm_request *request)
{
    const co_coll_args *args = &request->link.base.args;

    return request->coll->slices && args->each < args->count ? args->each : args->count;
}

/* Choose the algorithm and number the operation's steps. */
static void coll_number(shm_comm *c, shm_request *request)
{
    const co_coll_args *args = &request->link.base.args;
    size_t span;

    request->esize = co_dtype_size(args->dtype);
    request->descriptor = co_comm_descriptor(args, c->sequence++);
    request->coll = co_shm_coll_choose(args, args->count * request->esize, c->base.size);
    span = request->span = coll_span(request);
    request->chunk = request->coll->small ? args->count : coll_chunk(c, request);
    request->steps = span > request->chunk ? (span - 1) / request->chunk + 1 : 1;
    request->small = request->coll->small ? c->smalls++ : 0;
    request->first = c->posted;
    c->posted += request->steps;
}

static void coll_push(shm_comm *c, shm_request *request)
{
    if (c->last)
        c->last->link.next = &request->link;
    c->last = request;
    for (int phase = 0; phase < SHM_PHASES; phase++)
        if (!c->on[phase])
            c->on[phase] = request;
    while (coll_put(c))
        ;
}

void co_shm_coll_post(shm_comm *c, shm_request *request)
{
    coll_number(c, request);
    coll_push(c, request);
}

/* Advance a phase to its next step, and to the next request after its last. */
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

static shm_step coll_step(shm_comm *c, const shm_request *request, uint64_t step)
{
    const size_t count = request->span;
    const size_t offset = (size_t)(step - request->first) * request->chunk;

    return (shm_step){.c = c,
                      .request = request,
                      .args = &request->link.base.args,
                      .step = step,
                      .offset = offset,
                      .n = count - offset < request->chunk ? count - offset : request->chunk,
                      .rank = c->base.rank,
                      .size = c->base.size};
}

static bool coll_slot_is_free(shm_comm *c, uint64_t step)
{
    uint64_t released = UINT64_MAX;

    if (step < c->free_until)
        return true;
    for (int p = 0; p < c->base.size; p++) {
        const uint64_t r =
            atomic_load_explicit(&co_shm_counters(c, p)->released, memory_order_acquire);

        released = r < released ? r : released;
    }
    c->free_until = released + SHM_SLOTS;
    return step < c->free_until;
}

/* ---- one step of each phase ---- */

static void coll_put_step(const shm_step *s)
{
    shm_slot *slot = co_shm_slot(s->c, s->rank, s->step);

    slot->descriptor = s->request->descriptor;
    if (s->request->coll->put && s->n)
        s->request->coll->put(s);
    atomic_store_explicit(&slot->step, s->step + 1, memory_order_release);
}

static bool coll_has_put(const shm_comm *c, int rank, uint64_t step)
{
    return atomic_load_explicit(&co_shm_slot(c, rank, step)->step, memory_order_acquire) ==
           step + 1;
}

/* Whether another rank called the same operation, which starts with this step. */
static bool coll_is_same(const shm_comm *c, const shm_request *request, int rank)
{
    return memcmp(&co_shm_slot(c, rank, request->first)->descriptor, &request->descriptor,
                  sizeof(request->descriptor)) == 0;
}

/* Whether ranks write the sum of this step, whose chunks have all arrived, into each other's
   memory. */
static bool coll_is_shared(const shm_comm *c, const shm_request *request, uint64_t step)
{
    if (!request->coll->reduce || !request->coll->small)
        return request->coll->reduce != NULL;
    for (int p = 0; p < c->base.size; p++)
        if (co_shm_slot(c, p, step)->out)
            return true;
    return false;
}

static void coll_reduce_step(const shm_step *s)
{
    if (s->n)
        s->request->coll->reduce(s);
    atomic_store_explicit(&co_shm_counters(s->c, s->rank)->reduced, s->step + 1,
                          memory_order_release);
}

static bool coll_has_reduced(const shm_comm *c, int rank, uint64_t step)
{
    return atomic_load_explicit(&co_shm_counters(c, rank)->reduced, memory_order_acquire) > step;
}

static void coll_get_step(const shm_step *s)
{
    if (s->request->coll->get && s->n)
        s->request->coll->get(s);
    atomic_store_explicit(&co_shm_counters(s->c, s->rank)->released, s->step + 1,
                          memory_order_release);
}

/* ---- phase by phase ---- */

static bool coll_put(shm_comm *c)
{
    const shm_request *request = c->on[SHM_PUT];
    shm_step s;

    if (!request || !coll_slot_is_free(c, c->step[SHM_PUT]))
        return false;
    s = coll_step(c, request, c->step[SHM_PUT]);
    coll_put_step(&s);
    coll_advance(c, SHM_PUT);
    return true;
}

static co_status coll_compare(const shm_comm *c, const shm_request *request, int peer)
{
    const co_coll_descriptor *theirs = &co_shm_slot(c, peer, request->first)->descriptor;
    char a[CO_COMM_DESCRIBE_MAX], b[CO_COMM_DESCRIBE_MAX];

    if (coll_is_same(c, request, peer))
        return CO_OK;
    return co_fail(CO_E_MISMATCH, "rank %d calls %s where rank %d calls %s", peer,
                   co_comm_describe(a, sizeof(a), theirs), c->base.rank,
                   co_comm_describe(b, sizeof(b), &request->descriptor));
}

static co_status coll_reduce(shm_comm *c, bool *moved)
{
    shm_request *request = c->on[SHM_REDUCE];
    const uint64_t step = c->step[SHM_REDUCE];
    shm_step s;

    if (!request || step == c->step[SHM_PUT])
        return CO_OK;
    for (; c->arrived < c->base.size; c->arrived++) {
        if (!coll_has_put(c, c->arrived, step))
            return CO_OK;
        if (step == request->first)
            CO_TRY(coll_compare(c, request, c->arrived));
    }
    c->arrived = 0;
    request->shared = coll_is_shared(c, request, step);
    if (request->shared) {
        s = coll_step(c, request, step);
        coll_reduce_step(&s);
    }
    coll_advance(c, SHM_REDUCE);
    *moved = true;
    return CO_OK;
}

static bool coll_get(shm_comm *c)
{
    const shm_request *request = c->on[SHM_GET];
    const uint64_t step = c->step[SHM_GET];
    shm_step s;

    if (!request || step == c->step[SHM_REDUCE])
        return false;
    for (; request->shared && c->collected < c->base.size; c->collected++)
        if (!coll_has_reduced(c, c->collected, step))
            return false;
    c->collected = 0;
    s = coll_step(c, request, step);
    coll_get_step(&s);
    coll_advance(c, SHM_GET);
    return true;
}

/* ---- the direct path ---- */

static bool coll_look_again(const shm_comm *c, int *looks)
{
    if (c->base.oversubscribed)
        return false;
    if (*looks > COLL_FAST_LOOKS)
        co_comm_pause();
    return ++*looks < COLL_LOOKS;
}

/* Whether all have put the same operation; c->arrived counts those already seen. */
static bool coll_await_put(shm_comm *c, const shm_request *request)
{
    for (int looks = 0; c->arrived < c->base.size; c->arrived++) {
        while (!coll_has_put(c, c->arrived, request->first))
            if (!coll_look_again(c, &looks))
                return false;
        if (!coll_is_same(c, request, c->arrived))
            return false;
    }
    c->arrived = 0;
    return true;
}

static bool coll_await_reduced(shm_comm *c, uint64_t step)
{
    for (int looks = 0; c->collected < c->base.size; c->collected++)
        while (!coll_has_reduced(c, c->collected, step))
            if (!coll_look_again(c, &looks))
                return false;
    c->collected = 0;
    return true;
}

/* Other ranks have read the cache lines that the next small operation will write. Writing them now
   brings them back to this core in time. Slots of small chunks are consecutive whatever comes
   between. */
static void coll_claim_next(const shm_comm *c, const shm_step *s)
{
    volatile unsigned char *next = co_shm_slot(c, s->rank, s->request->small + 1)->small;
    const size_t bytes = s->n * s->request->esize;

    if (bytes <= SHM_TINY || s->step + 1 >= c->free_until)
        return;
    for (size_t at = 0; at < bytes; at += COLL_LINE)
        next[at] = 0;
}

/* The phase in which other ranks are late; SHM_PHASES: all done. */
static int coll_straight(shm_comm *c, shm_request *request)
{
    const shm_step s = coll_step(c, request, request->first);

    coll_put_step(&s);
    /* bookkeeping here, while the others' chunks are on their way */
    co_watch_post(&c->base, &request->link.base, s.args);
    if (request->coll->small && !co_shm_slot(c, s.rank, s.step)->in)
        coll_claim_next(c, &s);
    if (!coll_await_put(c, request))
        return SHM_REDUCE;
    request->shared = coll_is_shared(c, request, s.step);
    if (request->shared) {
        coll_reduce_step(&s);
        if (!coll_await_reduced(c, s.step))
            return SHM_GET;
    }
    coll_get_step(&s);
    return SHM_PHASES;
}

bool co_shm_coll_run(shm_comm *c, shm_request *request)
{
    int left;

    coll_number(c, request);
    if (c->last || request->steps > 1 || !coll_slot_is_free(c, request->first)) {
        coll_push(c, request);
        co_watch_post(&c->base, &request->link.base, &request->link.base.args);
        return false;
    }
    left = coll_straight(c, request);
    for (int phase = 0; phase < left; phase++)
        c->step[phase] = c->posted;
    if (left == SHM_PHASES)
        return true;
    for (int phase = left; phase < SHM_PHASES; phase++)
        c->on[phase] = request;
    c->last = request;
    return false;
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
        return !coll_has_reduced(c, rank, step);
    if (c->step[SHM_PUT] > step)
        return !coll_has_put(c, rank, step);
    return atomic_load_explicit(&counters->released, memory_order_acquire) + SHM_SLOTS <= step;
}
