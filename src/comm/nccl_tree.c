/*
 * nccl_tree.c - sums in tree order with NCCL, which has no such operation: ranks exchange slices of
 * their parts, each adds up its slice, and sends the sum to all, as on the host.
 */
#include "comm/nccl_internal.h"
#include "comm/tree.h"
#include "core/mem.h"
#include "device/device.h"

#define NCCL_LINE 16 /* elements that a slice is a multiple of */

static co_status nccl_reserve(co_nccl *n, size_t bytes, uint32_t timeout_ms)
{
    void *room = NULL;

    if (bytes <= n->room_bytes)
        return CO_OK;
    if (n->capturing)
        return co_fail(CO_E_UNSUPPORTED,
                       "a sum in tree order that is captured has been done before");
    CO_TRY(co_queue_wait(n->queue, timeout_ms));
    CO_TRY(co_device_alloc(&room, n->device, bytes, CO_MEMORY_DEVICE));
    co_device_free(n->device, n->room, CO_MEMORY_DEVICE);
    n->room = room;
    n->room_bytes = bytes;
    n->rooms++;
    return CO_OK;
}

/* A walk over the tree: `next` is the next part of this rank's slice, of `rank`. */
typedef struct nccl_walk {
    const co_tree *tree;
    co_nccl *nccl;
    float *next;
    size_t n; /* elements of a part */
    int rank;
} nccl_walk;

/* The value of node [a, b): a part, in which its sum is put. */
static float *nccl_add_up(nccl_walk *w, int a, int b)
{
    float *left, *right;
    int middle;

    while (w->tree->first[w->rank + 1] <= a)
        w->rank++;
    if (b <= w->tree->first[w->rank + 1]) {
        left = w->next;
        w->next += w->n;
        return left;
    }
    middle = co_tree_middle(a, b);
    left = nccl_add_up(w, a, middle);
    right = nccl_add_up(w, middle, b);
    w->nccl->device->ops->vector->add(w->nccl->queue, left, right, w->n);
    return left;
}

static cuda_nccl_op nccl_message(cuda_nccl_kind kind, const float *in, float *out, size_t count,
                                 int peer)
{
    return (cuda_nccl_op){
        .kind = kind, .in = in, .out = out, .count = count, .dtype = CO_F32, .peer = peer};
}

/* All parts of this rank's slice into the room, rank after rank; to others their slices of its
   parts. */
static co_status nccl_exchange_parts(co_comm *comm, const co_coll_args *args,
                                     const float *const *part, cuda_nccl_op *op)
{
    const co_tree *tree = args->tree;
    const int mine = tree->parts[comm->rank];
    size_t begin, other, n = 0, own;
    float *to = comm->nccl->room;

    own = co_tree_slice(&begin, tree, args->count, NCCL_LINE, comm->rank);
    for (int p = 0; p < comm->size; p++) {
        const size_t theirs = co_tree_slice(&other, tree, args->count, NCCL_LINE, p);

        for (int i = 0; i < tree->parts[p] && own; i++, to += own)
            if (p == comm->rank)
                CO_TRY(co_queue_copy(comm->nccl->queue, to, part[i] + begin, own * sizeof(*to)));
            else
                op[n++] = nccl_message(CUDA_NCCL_RECV, NULL, to, own, p);
        for (int i = 0; i < mine && p != comm->rank && theirs; i++)
            op[n++] = nccl_message(CUDA_NCCL_SEND, part[i] + other, NULL, theirs, p);
    }
    return co_nccl_run(comm, op, n);
}

/* Each rank's slice of the sum to all. */
static co_status nccl_gather_slices(co_comm *comm, const co_coll_args *args, cuda_nccl_op *op)
{
    float *out = args->out;
    size_t begin, other, n = 0;
    const size_t own = co_tree_slice(&begin, args->tree, args->count, NCCL_LINE, comm->rank);

    for (int p = 0; p < comm->size; p++) {
        const size_t theirs = co_tree_slice(&other, args->tree, args->count, NCCL_LINE, p);

        if (p != comm->rank && own)
            op[n++] = nccl_message(CUDA_NCCL_SEND, out + begin, NULL, own, p);
        if (p != comm->rank && theirs)
            op[n++] = nccl_message(CUDA_NCCL_RECV, NULL, out + other, theirs, p);
    }
    return co_nccl_run(comm, op, n);
}

co_status co_nccl_add_up(co_comm *comm, const co_coll_args *args, const float *const *part)
{
    const co_tree *tree = args->tree;
    size_t parts = 0, begin, n_op;
    const size_t own = co_tree_slice(&begin, tree, args->count, NCCL_LINE, comm->rank);
    cuda_nccl_op *op;
    co_status st;

    for (int p = 0; p < comm->size; p++)
        parts += (size_t)tree->parts[p];
    CO_TRY(nccl_reserve(comm->nccl, parts * own * sizeof(float), comm->timeout_ms));
    n_op = parts + (size_t)(tree->parts[comm->rank] + 2) * (size_t)comm->size;
    op = co_calloc(n_op, sizeof(*op));
    if (!op)
        return CO_E_NOMEM;
    st = nccl_exchange_parts(comm, args, part, op);
    if (st == CO_OK && own) {
        nccl_walk walk = {.tree = tree, .nccl = comm->nccl, .next = comm->nccl->room, .n = own};

        st = co_queue_copy(comm->nccl->queue, (float *)args->out + begin,
                           nccl_add_up(&walk, 0, tree->leaves), own * sizeof(float));
    }
    if (st == CO_OK)
        st = nccl_gather_slices(comm, args, op);
    co_free(op);
    return st;
}
