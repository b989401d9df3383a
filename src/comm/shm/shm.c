/* shm.c - a communicator over a context of the shared region: creation, split, destruction. */
#include <stdio.h>

#include "comm/comm_internal.h"
#include "comm/shm/internal.h"
#include "comm/transports.h"
#include "core/mem.h"
#include "core/plural.h"

static bool shm_probe(const char **why)
{
#if ATOMIC_LLONG_LOCK_FREE == 2
    (void)why;
    return true;
#else
    *why = "this machine has no lock-free 64-bit words to share between processes";
    return false;
#endif
}

/* A failed communicator keeps its own cause if the whole region fails later. */
static const co_comm_cause *shm_cause(const shm_comm *c)
{
    const co_comm_cause *cause = co_shm_failure(c->failure);

    return cause ? cause : co_shm_failure(co_shm_region_failure(c->shm));
}

static co_status shm_alive(const shm_comm *c)
{
    const co_comm_cause *cause = shm_cause(c);

    return cause ? co_comm_cause_fail(cause, c->world_rank) : CO_OK;
}

static co_status shm_progress(co_comm *comm)
{
    shm_comm *c = (shm_comm *)comm;

    CO_TRY(shm_alive(c));
    CO_TRY(co_shm_coll_progress(c));
    return c->pending ? co_shm_p2p_progress(c) : CO_OK;
}

static co_status shm_post(co_request **out, co_comm *comm, const co_coll_args *args)
{
    shm_comm *c = (shm_comm *)comm;
    shm_request *request;

    CO_TRY(shm_alive(c));
    request = co_comm_take_request(comm, sizeof(*request), args);
    if (!request)
        return CO_E_NOMEM;
    if (args->coll == CO_COLL_SEND || args->coll == CO_COLL_RECV)
        co_shm_p2p_post(c, request);
    else
        co_shm_coll_post(c, request);
    *out = &request->link.base;
    return CO_OK;
}

/* The request may be on the stack: after a failure it is not polled again. */
static co_status shm_run(co_comm *comm, const co_coll_args *args)
{
    shm_comm *c = (shm_comm *)comm;
    shm_request request;

    CO_TRY(shm_alive(c));
    request.link.next = NULL;
    request.link.base.comm = comm;
    request.link.base.args = *args;
    request.link.base.done = false;
    request.link.base.observer = NULL;
    request.link.base.staged = request.link.base.nccl = false;
    request.link.base.whole = NULL;
    request.coll = NULL;
    request.moved = 0;
    if (args->coll == CO_COLL_SEND || args->coll == CO_COLL_RECV) {
        co_shm_p2p_post(c, &request);
        co_watch_post(comm, &request.link.base, args);
    } else if (co_shm_coll_run(c, &request)) {
        co_watch_ran(&request.link.base);
        return CO_OK;
    }
    return co_request_wait(&request.link.base);
}

static bool shm_is_late(const co_request *request, int rank)
{
    if (((const shm_request *)request)->coll)
        return co_shm_coll_is_missing((const shm_comm *)request->comm, rank);
    return rank == request->args.peer;
}

static const co_watch *shm_late(const co_request *request, int rank)
{
    const shm_comm *c = (const shm_comm *)request->comm;
    const int member = atomic_load(&co_shm_counters(c, rank)->member);

    return member && shm_is_late(request, rank) ? co_shm_watch(c->shm, member - 1) : NULL;
}

static void shm_describe_wait(const co_request *request, char *out, size_t size)
{
    const co_coll_args *args = &request->args;
    char ranks[CO_COMM_CAUSE_SIZE / 4] = "";
    int n = 0;

    for (int p = 0; p < request->comm->size; p++)
        if (shm_is_late(request, p))
            co_comm_list_rank(ranks, sizeof(ranks), &n, p);
    if (n == 0)
        snprintf(out, size, "waiting in %s", co_comm_coll_name(args->coll));
    else
        snprintf(out, size, "waiting in %s for rank%s%s", co_comm_coll_name(args->coll),
                 co_plural((uint64_t)n), ranks);
}

static void shm_fail(co_comm *comm, int rank, co_status status, const char *cause)
{
    shm_comm *c = (shm_comm *)comm;
    const int member = atomic_load(&co_shm_counters(c, rank)->member);

    if (!shm_cause(c))
        co_shm_set_failure(c->shm, c->failure, member ? member - 1 : c->world_rank, status, cause);
}

static void shm_abort(co_comm *comm, co_status status, const char *cause)
{
    shm_comm *c = (shm_comm *)comm;

    co_shm_set_failure(c->shm, co_shm_region_failure(c->shm), c->world_rank, status, cause);
}

static void shm_destroy(co_comm *comm)
{
    shm_comm *c = (shm_comm *)comm;

    if (c->context == 0)
        co_log_set_tail(NULL); /* it is part of the region */
    co_shm_context_leave(c->shm, c->context, c->base.size);
    co_free(c->sends);
    co_free(c->receives);
    co_free(c);
}

/* Touch this rank's slots before others read them, so that their memory is on this rank's NUMA
   node. */
static void shm_touch_slots(const shm_comm *c)
{
    for (uint64_t step = 0; step < SHM_SLOTS; step++)
        atomic_store_explicit(&co_shm_slot(c, c->base.rank, step)->step, 0, memory_order_relaxed);
}

static co_status shm_open(co_comm **out, co_shm *shm, int context, int world_rank, int rank,
                          int size)
{
    shm_comm *c = co_calloc(1, sizeof(*c));

    *out = NULL;
    if (!c)
        return CO_E_NOMEM;
    c->base = (co_comm){.ops = &co_transport_shm,
                        .rank = rank,
                        .size = size,
                        .oversubscribed = shm->oversubscribed,
                        .timeout_ms = CO_COMM_TIMEOUT_MS};
    c->shm = shm;
    c->context = context;
    c->world_rank = world_rank;
    c->at = co_shm_context_at(shm, context);
    c->failure = co_shm_context_failure(shm, context);
    c->free_until = SHM_SLOTS;
    shm_touch_slots(c);
    atomic_store(&co_shm_counters(c, rank)->member, world_rank + 1);
    c->sends = co_calloc((size_t)size, sizeof(*c->sends));
    c->receives = co_calloc((size_t)size, sizeof(*c->receives));
    if (!c->sends || !c->receives) {
        shm_destroy(&c->base);
        return CO_E_NOMEM;
    }
    *out = &c->base;
    return CO_OK;
}

co_status co_shm_attach(co_comm **out, co_shm *shm, int rank)
{
    if (rank < 0 || rank >= shm->ranks)
        return co_fail(CO_E_USAGE, "there is no rank %d, only 0 to %d", rank, shm->ranks - 1);
    CO_TRY(shm_open(out, shm, 0, rank, rank, shm->ranks));
    co_watch_attach(*out, co_shm_watch(shm, rank), rank);
    return CO_OK;
}

/* The leader of each group takes a context and sends it to all. If any leader finds none (-1), the
   split fails on every rank, and leaders give theirs back. */
static co_status shm_agree_on_context(int *context, shm_comm *c, int32_t *taken, bool leader)
{
    int32_t mine = leader ? (int32_t)co_shm_context_take(c->shm) : INT32_MAX;
    co_status st = co_comm_run(
        &c->base,
        &(co_coll_args){
            .coll = CO_COLL_SPLIT, .in = &mine, .out = taken, .count = 1, .dtype = CO_I32});

    for (int p = 0; st == CO_OK && p < c->base.size; p++)
        if (taken[p] < 0)
            st = co_fail(CO_E_USAGE,
                         "split: no more than %d communicators at a time; destroy some first",
                         SHM_CONTEXTS);
    if (st != CO_OK && leader && mine >= 0)
        co_shm_context_give_back(c->shm, mine);
    *context = mine;
    return st;
}

static co_status shm_split(co_comm **out, co_comm *comm, int color, int key)
{
    shm_comm *c = (shm_comm *)comm;
    const int32_t mine[2] = {color, key};
    int32_t(*table)[2] = co_calloc((size_t)comm->size, sizeof(*table)); /* (size, 2) */
    int32_t *taken = co_calloc((size_t)comm->size, sizeof(*taken));
    co_comm_group group;
    co_status st = table && taken ? CO_OK : CO_E_NOMEM;
    int context;

    if (st == CO_OK)
        st = co_comm_run(
            comm,
            &(co_coll_args){
                .coll = CO_COLL_SPLIT, .in = mine, .out = table, .count = 2, .dtype = CO_I32});
    if (st != CO_OK)
        goto out;
    group = co_comm_group_find((const int32_t(*)[2])table, comm->size, comm->rank);
    st = shm_agree_on_context(&context, c, taken, color >= 0 && group.leader == comm->rank);
    if (st == CO_OK && color >= 0)
        st = shm_open(out, c->shm, taken[group.leader], c->world_rank, group.rank, group.size);
out:
    co_free(taken);
    co_free(table);
    return st;
}

/* Start of part `rank` of a window, in units that are multiples of any page size. */
static size_t shm_window_part(size_t size, int rank, int ranks)
{
    const size_t unit = (size_t)2 << 20, units = (size + unit - 1) / unit;
    const size_t at = units * (size_t)rank / (size_t)ranks * unit;

    return at < size ? at : size;
}

/* Rank 0 reserves the addresses and broadcasts them, with what it was asked for; each rank
   allocates its part on its own NUMA node. */
static co_status shm_window(void **base, co_comm *comm, size_t bytes)
{
    shm_comm *c = (shm_comm *)comm;
    const size_t size = co_shm_window_size(bytes);
    const size_t begin = shm_window_part(size, comm->rank, comm->size);
    const size_t end = shm_window_part(size, comm->rank + 1, comm->size);
    int64_t root[2] = {comm->rank == 0 ? co_shm_window_take(c->shm, size) : 0, (int64_t)bytes};
    const co_coll_args send = {
        .coll = CO_COLL_BCAST, .in = root, .out = root, .count = 2, .dtype = CO_I64};
    int64_t enough; /* on all ranks; below 0: one asks for another size */
    const co_coll_args agree = {.coll = CO_COLL_ALLREDUCE,
                                .in = &enough,
                                .out = &enough,
                                .count = 1,
                                .dtype = CO_I64,
                                .op = CO_MIN};
    unsigned char *at;

    CO_TRY(co_comm_run(comm, &send));
    if (root[0] >= 0) {
        const bool same = root[1] == (int64_t)bytes;

        at = co_shm_window_at(c->shm, (size_t)root[0]);
        enough = same ? co_shm_window_fill(c->shm, at + begin, end - begin) : -1;
        CO_TRY(co_comm_run(comm, &agree));
        if (enough > 0) {
            *base = at;
            return CO_OK;
        }
        if (same)
            co_shm_window_empty(at + begin, end - begin);
        if (enough < 0)
            return co_fail(CO_E_MISMATCH,
                           "window: ranks differ in its size: rank %d asks for %zu bytes, rank 0 "
                           "for %lld",
                           comm->rank, bytes, (long long)root[1]);
    }
    if (root[0] == SHM_NO_ADDRESSES)
        return co_fail(CO_E_UNSUPPORTED,
                       "no addresses for %zu bytes that %d ranks share; raise the limits on "
                       "addresses and files (ulimit -v, ulimit -f)",
                       bytes, comm->size);
    return co_fail(CO_E_NOMEM, "no %zu bytes of memory for %d ranks to share", bytes, comm->size);
}

static void shm_free_window(co_comm *comm, void *base, size_t bytes)
{
    co_shm_window_leave(base, bytes, comm->size);
}

static void *shm_alloc(co_comm *comm, size_t bytes)
{
    co_shm *shm = ((shm_comm *)comm)->shm;
    const int64_t offset = co_shm_window_take(shm, bytes);
    void *at;

    if (offset < 0)
        return NULL;
    at = co_shm_window_at(shm, (size_t)offset);
    if (co_shm_window_fill(shm, at, bytes))
        return at;
    co_shm_window_empty(at, bytes);
    return NULL;
}

static bool shm_free(co_comm *comm, void *data, size_t bytes)
{
    if (!co_shm_window_has(((shm_comm *)comm)->shm, data, bytes))
        return false;
    co_shm_window_empty(data, bytes);
    return true;
}

const co_comm_ops co_transport_shm = {
    .name = "shm",
    .summary = "ranks of one machine, over shared memory",
    .probe = shm_probe,
    .post = shm_post,
    .run = shm_run,
    .progress = shm_progress,
    .describe_wait = shm_describe_wait,
    .late = shm_late,
    .destroy_request = co_comm_give_request,
    .split = shm_split,
    .window = shm_window,
    .free_window = shm_free_window,
    .alloc = shm_alloc,
    .free = shm_free,
    .fail = shm_fail,
    .abort = shm_abort,
    .destroy = shm_destroy,
};
