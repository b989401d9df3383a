/*
 * nccl.c - operations on memory of GPUs, by NCCL, with the transport of the same ranks for all that
 * NCCL does not do: comparing calls, timeouts, failures.
 *
 * A rank posts its descriptor by the transport, and NCCL is given the operation when those of all
 * ranks are there and equal. So NCCL never waits for a rank that does something else, or nothing;
 * what a wait finds out about late and dead ranks is the transport's. NCCL's operations are on a
 * queue of their own, so that they run beside the work of the queue that they were posted with.
 */
#include "comm/nccl.h"

#include <string.h>

#include "comm/comm_internal.h"
#include "comm/nccl_internal.h"
#include "comm/queued.h"
#include "comm/tree.h"
#include "core/clock.h"
#include "core/mem.h"
#include "device/device.h"

#define NCCL_POLL_US  50
#define NCCL_LEAVE_MS 2000 /* for others to leave, too, when all work is done */

typedef struct nccl_request {
    co_request base;   /* the caller's request */
    co_request *check; /* owned; the all-gather of descriptors. NULL: NCCL has the operation */
    co_coll_descriptor mine, *all; /* owned; (size) */
    const float *part[CO_TREE_MAX_PARTS];
    co_fence *ready, *done; /* owned: input is there; output is */
    co_queue *queue;        /* borrowed; that `ready` was recorded in */
    bool captured;
    struct nccl_request *next;
} nccl_request;

static nccl_request *nccl_of(co_request *request)
{
    return (nccl_request *)request;
}

/* ---- requests ---- */

static void nccl_free_request(nccl_request *r)
{
    if (!r)
        return;
    co_fence_destroy(r->ready);
    co_fence_destroy(r->done);
    co_free(r->all);
    co_free(r);
}

static co_status nccl_create_request(nccl_request **out, const co_comm *comm)
{
    nccl_request *r = co_calloc(1, sizeof(*r));
    co_status st = CO_E_NOMEM;

    if (r)
        r->all = co_calloc((size_t)comm->size, sizeof(*r->all));
    if (r && r->all)
        st = co_fence_create(&r->ready, comm->nccl->device);
    if (st == CO_OK)
        st = co_fence_create(&r->done, comm->nccl->device);
    if (st == CO_OK)
        *out = r;
    else
        nccl_free_request(r);
    return st;
}

static co_status nccl_take_request(nccl_request **out, co_comm *comm)
{
    nccl_request *r = comm->nccl->spare;

    if (r)
        comm->nccl->spare = r->next;
    else
        CO_TRY(nccl_create_request(&r, comm));
    r->base.comm = comm;
    *out = r;
    return CO_OK;
}

static void nccl_give_request(nccl_request *r)
{
    co_nccl *n = r->base.comm->nccl;

    if (n && r->captured && n->capturing) {
        r->next = n->captured;
        n->captured = r;
    } else if (n && !r->captured) {
        r->next = n->spare;
        n->spare = r;
    } else {
        nccl_free_request(r);
    }
}

static void nccl_free_list(nccl_request **list)
{
    while (*list) {
        nccl_request *r = *list;

        *list = r->next;
        nccl_free_request(r);
    }
}

void co_nccl_drop_captured(co_nccl *n)
{
    nccl_free_list(&n->captured);
}

/* ---- NCCL's side ---- */

/* Until NCCL has accepted what was begun, which may take it all ranks, or the time is over. */
static co_status nccl_poll(bool *ready, co_comm *comm, uint32_t timeout_ms)
{
    const uint64_t end_ns = co_clock_ns() + (uint64_t)timeout_ms * 1000000;

    for (;;) {
        CO_TRY(cuda_nccl_ready(ready, comm->nccl->link));
        if (*ready)
            return CO_OK;
        CO_TRY(comm->ops->progress(comm));
        if (co_clock_ns() >= end_ns)
            return CO_OK;
        co_clock_sleep_us(NCCL_POLL_US);
    }
}

static co_status nccl_settle(co_comm *comm)
{
    bool ready;

    CO_TRY(nccl_poll(&ready, comm, comm->timeout_ms));
    if (ready)
        return CO_OK;
    return co_fail(CO_E_TIMEOUT,
                   "rank %d: NCCL has not brought the GPUs of %d ranks together after %u ms; "
                   "`device: {name: cuda, exchange: host}` does without it",
                   comm->rank, comm->size, comm->timeout_ms);
}

co_status co_nccl_run(co_comm *comm, const cuda_nccl_op *op, size_t n)
{
    CO_TRY(cuda_nccl_run(comm->nccl->link, comm->nccl->queue, op, n));
    return nccl_settle(comm);
}

static co_status nccl_give_plain(co_comm *comm, const co_coll_args *args)
{
    static const cuda_nccl_kind kinds[CO_COLL_COUNT] = {[CO_COLL_BCAST] = CUDA_NCCL_BROADCAST,
                                                        [CO_COLL_ALLREDUCE] = CUDA_NCCL_ALLREDUCE,
                                                        [CO_COLL_REDUCE] = CUDA_NCCL_REDUCE,
                                                        [CO_COLL_REDUCE_SCATTER] =
                                                            CUDA_NCCL_REDUCE_SCATTER,
                                                        [CO_COLL_ALLGATHER] = CUDA_NCCL_ALLGATHER};
    const cuda_nccl_op op = {.kind = kinds[args->coll],
                             .in = args->in,
                             .out = args->out,
                             .count = args->count,
                             .dtype = args->dtype,
                             .op = args->op,
                             .peer = args->peer};

    return co_nccl_run(comm, &op, 1);
}

/* ---- posting ---- */

bool co_nccl_takes(const co_comm *comm, const co_coll_args *args)
{
    if (!comm->nccl || !args->queue || co_queue_device(args->queue) != comm->nccl->device ||
        (args->count == 0 && !comm->nccl->capturing))
        return false;
    if (args->coll == CO_COLL_TREE)
        return args->dtype == CO_F32;
    return args->coll == CO_COLL_BCAST || args->coll == CO_COLL_ALLREDUCE ||
           args->coll == CO_COLL_REDUCE || args->coll == CO_COLL_REDUCE_SCATTER ||
           args->coll == CO_COLL_ALLGATHER;
}

co_status co_nccl_check_captured(const co_comm *comm, const co_coll_args *args)
{
    if (!comm->nccl || !comm->nccl->capturing || co_nccl_takes(comm, args))
        return CO_OK;
    return co_fail(CO_E_USAGE, "%s: a captured step has operations of NCCL alone",
                   co_comm_coll_name(args->coll));
}

static co_status nccl_prepare(nccl_request *r, co_comm *comm, const co_coll_args *args)
{
    if (r->queue && r->queue != args->queue)
        CO_TRY(co_comm_wait_fence(comm, r->ready));
    r->base = (co_request){.comm = comm, .args = *args, .nccl = true};
    r->mine = co_comm_descriptor(args, comm->nccl->sequence++);
    for (int i = 0; args->coll == CO_COLL_TREE && i < args->tree->parts[comm->rank]; i++)
        r->part[i] = ((const float *const *)args->in)[i];
    r->queue = args->queue;
    return co_fence_record(r->ready, args->queue);
}

static void nccl_push(co_nccl *n, nccl_request *r)
{
    nccl_request **end = &n->waiting;

    while (*end)
        end = &(*end)->next;
    r->next = NULL;
    *end = r;
}

/* Once all is done that `ready` comes after. */
static co_status nccl_give(co_comm *comm, nccl_request *r)
{
    const co_coll_args *args = &r->base.args;
    co_nccl *n = comm->nccl;

    CO_TRY(co_queue_follow(n->queue, r->ready));
    co_watch_queue(comm, args, n->queue, true);
    if (args->coll == CO_COLL_TREE)
        CO_TRY(co_nccl_add_up(comm, args, r->part));
    else if (args->count > 0)
        CO_TRY(nccl_give_plain(comm, args));
    co_watch_queue(comm, args, n->queue, false);
    if (n->capturing)
        CO_TRY(co_queue_fill(n->queue, n->mark, co_nccl_captured_mark(n->capturing), 1));
    return co_fence_record(r->done, n->queue);
}

/* Of a capture: with fences of its own, and without asking other ranks. */
static co_status nccl_capture(co_request **request, co_comm *comm, const co_coll_args *args)
{
    nccl_request *r = NULL;
    co_status st;

    CO_TRY(nccl_create_request(&r, comm));
    r->captured = true;
    st = nccl_prepare(r, comm, args);
    co_nccl_captured_add(comm->nccl->capturing, args);
    if (st == CO_OK)
        st = nccl_give(comm, r);
    if (st == CO_OK)
        *request = &r->base;
    else
        nccl_give_request(r);
    return st;
}

co_status co_nccl_post(co_request **request, co_comm *comm, const co_coll_args *args)
{
    co_coll_args check = {.coll = CO_COLL_ALLGATHER, .dtype = CO_U8};
    nccl_request *r = NULL;
    co_status st;

    if (!comm->nccl->link) {
        CO_TRY(comm->ops->progress(comm));
        return co_fail(CO_E_FAILED, "rank %d: NCCL has been given up", comm->rank);
    }
    if (comm->nccl->capturing)
        return nccl_capture(request, comm, args);
    CO_TRY(nccl_take_request(&r, comm));
    st = nccl_prepare(r, comm, args);
    check.in = &r->mine;
    check.out = r->all;
    check.count = sizeof(r->mine);
    if (st == CO_OK)
        st = comm->ops->post(&r->check, comm, &check);
    if (st != CO_OK) {
        nccl_give_request(r);
        return st;
    }
    r->check->whole = &r->base.args;
    co_watch_post(comm, r->check, args);
    nccl_push(comm->nccl, r);
    *request = &r->base;
    return CO_OK;
}

static co_status nccl_compare(const co_comm *comm, const nccl_request *r)
{
    char a[CO_COMM_DESCRIBE_MAX], b[CO_COMM_DESCRIBE_MAX];

    for (int p = 0; p < comm->size; p++)
        if (memcmp(&r->all[p], &r->mine, sizeof(r->mine)) != 0)
            return co_fail(CO_E_MISMATCH, "rank %d calls %s where rank %d calls %s", p,
                           co_comm_describe(a, sizeof(a), &r->all[p]), comm->rank,
                           co_comm_describe(b, sizeof(b), &r->mine));
    return CO_OK;
}

/* The first of the list, which all ranks have posted. */
static co_status nccl_give_first(co_comm *comm)
{
    co_nccl *n = comm->nccl;
    nccl_request *r = n->waiting;

    n->waiting = r->next;
    co_watch_done(r->check);
    co_request_destroy(r->check);
    r->check = NULL;
    CO_TRY(nccl_compare(comm, r));
    return nccl_give(comm, r);
}

co_status co_nccl_advance(co_comm *comm)
{
    const co_nccl *n = comm->nccl;
    bool ready;

    if (!n->link || n->meeting)
        return CO_OK;
    CO_TRY(cuda_nccl_ready(&ready, n->link));
    while (n->waiting && n->waiting->check->done)
        CO_TRY(nccl_give_first(comm));
    return CO_OK;
}

/* Until NCCL has the operation. */
static co_status nccl_meet(const nccl_request *r)
{
    co_comm *comm = r->base.comm;
    co_nccl *n = comm->nccl;
    co_status st = CO_OK;

    while (st == CO_OK && r->check) {
        n->meeting = true;
        st = co_request_wait(n->waiting->check);
        n->meeting = false;
        if (st == CO_OK)
            st = co_comm_progress(comm);
    }
    if (st != CO_OK)
        co_nccl_abort(comm);
    return st;
}

/* ---- requests of callers ---- */

co_status co_nccl_wait(co_request *request)
{
    CO_TRY(nccl_meet(nccl_of(request)));
    CO_TRY(co_comm_wait_fence(request->comm, nccl_of(request)->done));
    request->done = true;
    return CO_OK;
}

co_status co_nccl_test(bool *done, co_request *request)
{
    *done = request->done;
    if (*done)
        return CO_OK;
    CO_TRY(co_comm_progress(request->comm));
    if (!nccl_of(request)->check)
        CO_TRY(co_fence_reached(done, nccl_of(request)->done));
    request->done = *done;
    return CO_OK;
}

co_status co_nccl_order(co_request *request, co_queue *queue)
{
    CO_TRY(nccl_meet(nccl_of(request)));
    return co_queue_follow(queue, nccl_of(request)->done);
}

void co_nccl_destroy(co_request *request)
{
    nccl_request *r = nccl_of(request);

    for (nccl_request **at = request->comm->nccl ? &request->comm->nccl->waiting : NULL; at && *at;
         at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    co_request_destroy(r->check);
    r->check = NULL;
    nccl_give_request(r);
}

/* ---- opening and closing ---- */

void co_nccl_abort(co_comm *comm)
{
    co_nccl *n = comm->nccl;

    if (!n || !n->link)
        return;
    cuda_nccl_abort(n->link);
    n->link = NULL;
}

/* In order, with all ranks, which is tried for a while; false: not so. A rank that has failed by
   itself comes here before the others know of it. */
static bool nccl_leave(co_comm *comm)
{
    const co_nccl *n = comm->nccl;
    bool ready = false;

    return n->link && !n->waiting && comm->ops->progress(comm) == CO_OK &&
           co_queue_wait(n->queue, comm->timeout_ms) == CO_OK &&
           cuda_nccl_leave(n->link) == CO_OK && nccl_poll(&ready, comm, NCCL_LEAVE_MS) == CO_OK &&
           ready;
}

void co_nccl_close(co_comm *comm)
{
    co_nccl *n = comm->nccl;

    if (!n)
        return;
    if (n->link && n->registered && co_queue_wait(n->queue, comm->timeout_ms) == CO_OK)
        cuda_nccl_deregister(n->link, n->registered);
    if (nccl_leave(comm))
        cuda_nccl_destroy(n->link);
    else
        co_nccl_abort(comm);
    nccl_free_list(&n->spare);
    nccl_free_list(&n->captured);
    co_queue_destroy(n->queue);
    co_device_free(n->device, n->mark, CO_MEMORY_PINNED);
    co_device_free(n->device, n->room, CO_MEMORY_DEVICE);
    co_free(n->word);
    co_free(n);
    comm->nccl = NULL;
}

/* What rank 0 sends: an id, if it and all others have the library. */
static co_status nccl_share_id(unsigned char id[CUDA_NCCL_ID], co_comm *comm)
{
    const co_status own = cuda_nccl_check();
    int64_t all = own == CO_OK;
    co_status st = CO_OK;

    CO_TRY(co_comm_allreduce(comm, &all, &all, 1, CO_I64, CO_MIN));
    if (!all)
        return own != CO_OK ? own : co_fail(CO_E_UNSUPPORTED, "cuda: another rank is without NCCL");
    if (comm->rank == 0)
        st = cuda_nccl_make_id(id);
    all = st == CO_OK;
    CO_TRY(co_comm_bcast(comm, &all, 1, CO_I64, 0));
    if (!all)
        return st != CO_OK ? st : co_fail(CO_E_FAILED, "cuda: NCCL does not start on rank 0");
    return co_comm_bcast(comm, id, CUDA_NCCL_ID, CO_U8, 0);
}

co_status co_nccl_open(co_comm *comm, co_device *device)
{
    unsigned char id[CUDA_NCCL_ID] = {0};
    void *mark = NULL;
    co_status st;

    CO_TRY(nccl_share_id(id, comm));
    comm->nccl = co_calloc(1, sizeof(*comm->nccl));
    if (!comm->nccl)
        return CO_E_NOMEM;
    comm->nccl->device = device;
    comm->nccl->word = co_calloc((size_t)comm->size, sizeof(*comm->nccl->word));
    st = comm->nccl->word ? co_queue_create(&comm->nccl->queue, device) : CO_E_NOMEM;
    if (st == CO_OK)
        st = co_device_alloc(&mark, device, 1, CO_MEMORY_PINNED);
    comm->nccl->mark = mark;
    if (st == CO_OK)
        st = cuda_nccl_join(&comm->nccl->link, device, id, comm->rank, comm->size);
    if (st == CO_OK)
        st = nccl_settle(comm);
    if (st != CO_OK) {
        co_nccl_abort(comm);
        co_nccl_close(comm);
    }
    return st;
}

co_status co_nccl_register(co_comm *comm, void *at, size_t bytes)
{
    co_nccl *n = comm->nccl;
    int64_t all;

    if (!n)
        return CO_OK;
    all = cuda_nccl_registers() && cuda_nccl_register(&n->registered, n->link, at, bytes) == CO_OK;
    CO_TRY(co_comm_allreduce(comm, &all, &all, 1, CO_I64, CO_MIN));
    if (all || !n->registered)
        return CO_OK;
    cuda_nccl_deregister(n->link, n->registered);
    n->registered = NULL;
    return CO_OK;
}
