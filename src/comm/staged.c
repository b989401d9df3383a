/*
 * staged.c - operations on device memory over transports that access only host memory: data is
 * copied to pinned memory by the queue, and back after the operation.
 *
 * Ranks post operations in the same order. So operations whose input is still being copied are kept
 * in a list, and any later operation waits for them. Does not know what an operation does.
 */
#include <string.h>

#include "comm/comm_internal.h"
#include "comm/nccl.h"
#include "comm/queued.h"
#include "comm/tree.h"
#include "core/mem.h"
#include "device/device.h"

struct co_staged {
    co_request base;   /* the caller's request */
    co_request *inner; /* owned; on the pinned memory. NULL: not posted yet */
    co_device *device;
    unsigned char *block; /* owned, pinned: input, then output unless it is in place */
    size_t bytes;
    unsigned char *in, *out;
    size_t in_bytes, out_bytes; /* 0: nothing to copy */
    const void *part[CO_TREE_MAX_PARTS];
    co_fence *ready, *back; /* owned: input has arrived; output has been copied */
    struct co_staged *next;
};

static co_staged *staged_of(co_request *request)
{
    return (co_staged *)request;
}

static void staged_free(co_staged *s)
{
    co_fence_destroy(s->ready);
    co_fence_destroy(s->back);
    co_device_free(s->device, s->block, CO_MEMORY_PINNED);
    co_free(s);
}

static co_status staged_create(co_staged **out, co_device *device)
{
    co_staged *s = co_calloc(1, sizeof(*s));
    co_status st;

    if (!s)
        return CO_E_NOMEM;
    s->device = device;
    st = co_fence_create(&s->ready, device);
    if (st == CO_OK)
        st = co_fence_create(&s->back, device);
    if (st == CO_OK)
        *out = s;
    else
        staged_free(s);
    return st;
}

/* Reuse a finished one of this device, or create one. */
static co_status staged_find(co_staged **out, co_comm *comm, co_device *device)
{
    for (co_staged **at = &comm->staged_spare; *at; at = &(*at)->next)
        if ((*at)->device == device) {
            *out = *at;
            *at = (*at)->next;
            return CO_OK;
        }
    return staged_create(out, device);
}

static void staged_give(co_staged *s)
{
    co_comm *comm = s->base.comm;

    s->next = comm->staged_spare;
    comm->staged_spare = s;
}

static co_status staged_reserve(co_staged *s, size_t bytes)
{
    void *block = NULL;

    if (bytes <= s->bytes)
        return CO_OK;
    CO_TRY(co_device_alloc(&block, s->device, bytes, CO_MEMORY_PINNED));
    co_device_free(s->device, s->block, CO_MEMORY_PINNED);
    s->block = block;
    s->bytes = bytes;
    return CO_OK;
}

static bool staged_in_place(const co_coll_args *args)
{
    return !co_comm_is_tree(args) && args->in == args->out;
}

/* Place input and output in host memory. */
static co_status staged_place(co_staged *s)
{
    const bool in_place = staged_in_place(&s->base.args);
    const size_t more = in_place ? 0 : s->out_bytes;

    CO_TRY(co_comm_wait_fence(s->base.comm, s->ready));
    CO_TRY(co_comm_wait_fence(s->base.comm, s->back));
    if (in_place && s->in_bytes < s->out_bytes)
        CO_TRY(staged_reserve(s, s->out_bytes));
    else
        CO_TRY(staged_reserve(s, s->in_bytes + more));
    s->in = s->block;
    s->out = in_place ? s->block : s->block + s->in_bytes;
    return CO_OK;
}

/* Copy the input, which for a tree all-reduce is several parts. */
static co_status staged_copy_in(co_staged *s)
{
    const co_coll_args *args = &s->base.args;
    const co_comm *comm = s->base.comm;
    const int parts = co_comm_is_tree(args) ? args->tree->parts[comm->rank] : 1;
    const size_t bytes = s->in_bytes / (size_t)parts;

    for (int i = 0; i < parts && bytes; i++) {
        const void *from = co_comm_is_tree(args) ? ((const void *const *)args->in)[i] : args->in;

        s->part[i] = s->in + (size_t)i * bytes;
        CO_TRY(co_queue_copy(args->queue, s->in + (size_t)i * bytes, from, bytes));
    }
    return co_fence_record(s->ready, args->queue);
}

static void staged_push(co_staged *s)
{
    co_staged **end = &s->base.comm->staged;

    while (*end)
        end = &(*end)->next;
    s->next = NULL;
    *end = s;
}

co_status co_staged_post(co_request **request, co_comm *comm, const co_coll_args *args)
{
    co_staged *s = NULL;
    co_status st;

    CO_TRY(staged_find(&s, comm, co_queue_device(args->queue)));
    s->base = (co_request){.comm = comm, .args = *args, .staged = true};
    s->inner = NULL;
    co_comm_buffer_bytes(&s->in_bytes, &s->out_bytes, comm, args);
    st = staged_place(s);
    if (st == CO_OK)
        st = staged_copy_in(s);
    if (st != CO_OK) {
        staged_give(s);
        return st;
    }
    staged_push(s);
    *request = &s->base;
    return CO_OK;
}

/* Post the first in the list. */
static co_status staged_post_inner(co_comm *comm)
{
    co_staged *s = comm->staged;
    co_coll_args args = s->base.args;

    args.in = co_comm_is_tree(&args) ? (const void *)s->part : s->in;
    args.out = s->out;
    args.queue = NULL;
    comm->staged = s->next;
    return co_comm_post_now(&s->inner, comm, &args);
}

co_status co_staged_advance(co_comm *comm)
{
    while (comm->staged) {
        bool ready = false;

        CO_TRY(co_fence_reached(&ready, comm->staged->ready));
        if (!ready)
            return CO_OK;
        CO_TRY(staged_post_inner(comm));
    }
    return CO_OK;
}

co_status co_staged_flush(co_comm *comm)
{
    while (comm->staged) {
        const co_staged *first = comm->staged;

        CO_TRY(co_comm_wait_fence(comm, first->ready));
        if (comm->staged == first)
            CO_TRY(staged_post_inner(comm));
    }
    return CO_OK;
}

static co_status staged_copy_back(co_staged *s)
{
    co_request *request = &s->base;

    if (s->out_bytes)
        CO_TRY(co_queue_copy(request->args.queue, request->args.out, s->out, s->out_bytes));
    CO_TRY(co_fence_record(s->back, request->args.queue));
    request->done = true;
    return CO_OK;
}

co_status co_staged_wait(co_request *request)
{
    co_staged *s = staged_of(request);

    if (request->done)
        return CO_OK;
    while (!s->inner)
        CO_TRY(co_staged_flush(request->comm));
    CO_TRY(co_request_wait(s->inner));
    return staged_copy_back(s);
}

co_status co_staged_test(bool *done, co_request *request)
{
    co_staged *s = staged_of(request);
    bool inner = false;

    *done = request->done;
    if (*done)
        return CO_OK;
    CO_TRY(co_comm_progress(request->comm));
    if (s->inner)
        CO_TRY(co_request_test(&inner, s->inner));
    if (inner)
        CO_TRY(staged_copy_back(s));
    *done = request->done;
    return CO_OK;
}

co_status co_staged_order(co_request *request, co_queue *queue)
{
    const co_staged *s = staged_of(request);

    CO_TRY(co_staged_wait(request));
    return queue == request->args.queue ? CO_OK : co_queue_follow(queue, s->back);
}

void co_staged_destroy(co_request *request)
{
    co_staged *s = staged_of(request);

    for (co_staged **at = &request->comm->staged; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    co_request_destroy(s->inner);
    s->inner = NULL;
    staged_give(s);
}

void co_comm_release_devices(co_comm *comm)
{
    co_nccl_close(comm);
    while (comm->staged_spare) {
        co_staged *s = comm->staged_spare;

        comm->staged_spare = s->next;
        (void)co_fence_wait(s->ready, comm->timeout_ms);
        (void)co_fence_wait(s->back, comm->timeout_ms);
        staged_free(s);
    }
}
