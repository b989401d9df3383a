/*
 * messages.c - messages between two ranks as a byte stream through a ring in shared memory.
 *
 * Each ring has one writer and one reader. A message is a header followed by its data, and may be
 * longer than the ring.
 */
#include <string.h>

#include "comm/shm/internal.h"

#define P2P_BURST ((size_t)16 << 10) /* published at a time, so that the reader can start early */

/* A message's header is the sender's descriptor. */
#define P2P_HEADER sizeof(co_coll_descriptor)

void co_shm_p2p_post(shm_comm *c, shm_request *request)
{
    const co_coll_args *args = &request->link.base.args;
    co_comm_queue *queues = args->coll == CO_COLL_SEND ? c->sends : c->receives;

    request->esize = co_dtype_size(args->dtype);
    request->descriptor = co_comm_descriptor(args, 0);
    co_comm_queue_push(&queues[args->peer], &request->link);
    c->pending++;
}

static size_t messages_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Copy n bytes into the ring at stream position `at`, or out of it, wrapping at the end. */
static void messages_write(shm_ring *ring, size_t capacity, uint64_t at, const void *in, size_t n)
{
    const size_t begin = (size_t)(at % capacity), head = messages_min(n, capacity - begin);

    memcpy(ring->data + begin, in, head);
    if (n > head)
        memcpy(ring->data, (const unsigned char *)in + head, n - head);
}

static void messages_read(const shm_ring *ring, size_t capacity, uint64_t at, void *out, size_t n)
{
    const size_t begin = (size_t)(at % capacity), head = messages_min(n, capacity - begin);

    memcpy(out, ring->data + begin, head);
    if (n > head)
        memcpy((unsigned char *)out + head, ring->data, n - head);
}

/* Send as much of the oldest message to `to` as fits; returns whether it is complete. */
static bool messages_send(shm_comm *c, int to)
{
    shm_request *request = (shm_request *)c->sends[to].head;
    const co_coll_args *args = &request->link.base.args;
    const size_t total = P2P_HEADER + args->count * request->esize;
    const size_t capacity = c->shm->ring_bytes;
    shm_ring *ring = co_shm_ring(c, c->base.rank, to);
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);

    while (request->moved < total) {
        const uint64_t read = atomic_load_explicit(&ring->read, memory_order_acquire);
        const size_t room = capacity - (size_t)(written - read);
        size_t n = messages_min(total - request->moved, messages_min(room, P2P_BURST));
        const void *in = &request->descriptor;

        if (request->moved >= P2P_HEADER)
            in = (const unsigned char *)args->in + (request->moved - P2P_HEADER);
        else
            n = room < P2P_HEADER ? 0 : P2P_HEADER;
        if (n == 0)
            return false;
        messages_write(ring, capacity, written, in, n);
        written += n;
        request->moved += n;
        atomic_store_explicit(&ring->written, written, memory_order_release);
    }
    return true;
}

static co_status messages_check_header(const shm_comm *c, const shm_request *request,
                                       const co_coll_descriptor *sent, int from)
{
    char a[CO_COMM_DESCRIBE_MAX], b[CO_COMM_DESCRIBE_MAX];

    if (sent->count == request->descriptor.count && sent->dtype_op == request->descriptor.dtype_op)
        return CO_OK;
    return co_fail(CO_E_MISMATCH, "rank %d calls %s where rank %d calls %s", from,
                   co_comm_describe(a, sizeof(a), sent), c->base.rank,
                   co_comm_describe(b, sizeof(b), &request->descriptor));
}

/* Receive what has arrived of the oldest message from `from`; *whole: it is complete. */
static co_status messages_receive(bool *whole, shm_comm *c, int from)
{
    shm_request *request = (shm_request *)c->receives[from].head;
    const co_coll_args *args = &request->link.base.args;
    const size_t total = P2P_HEADER + args->count * request->esize;
    const size_t capacity = c->shm->ring_bytes;
    shm_ring *ring = co_shm_ring(c, from, c->base.rank);
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);

    *whole = false;
    while (request->moved < total) {
        const uint64_t written = atomic_load_explicit(&ring->written, memory_order_acquire);
        size_t n = messages_min(total - request->moved, (size_t)(written - read));

        if (n == 0)
            return CO_OK;
        if (request->moved < P2P_HEADER) {
            co_coll_descriptor sent;

            n = P2P_HEADER; /* published as a whole */
            messages_read(ring, capacity, read, &sent, n);
            CO_TRY(messages_check_header(c, request, &sent, from));
        } else {
            messages_read(ring, capacity, read,
                          (unsigned char *)args->out + (request->moved - P2P_HEADER), n);
        }
        read += n;
        request->moved += n;
        atomic_store_explicit(&ring->read, read, memory_order_release);
    }
    *whole = true;
    return CO_OK;
}

static void messages_finish(shm_comm *c, co_comm_queue *queue)
{
    queue->head->base.done = true;
    co_comm_queue_pop(queue);
    c->pending--;
}

co_status co_shm_p2p_progress(shm_comm *c)
{
    for (int peer = 0; peer < c->base.size; peer++) {
        while (c->sends[peer].head && messages_send(c, peer))
            messages_finish(c, &c->sends[peer]);
        while (c->receives[peer].head) {
            bool whole;

            CO_TRY(messages_receive(&whole, c, peer));
            if (!whole)
                break;
            messages_finish(c, &c->receives[peer]);
        }
    }
    return CO_OK;
}
