/*
 * calls.c - the table of MPI's calls, of SMPI, with non-blocking operations as libraries of MPI
 * have them.
 *
 * As Open MPI 4.1 (libnbc) does it: exchanges and gathers are linear, with all messages posted at
 * once. Each message costs its sender the link's overhead.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/ranks.h"

#include "comm/mpi/internal.h"
#include "core/mem.h"

#define CALLS_TAG   1000  /* of the first operation of a communicator */
#define CALLS_TAGS  20000 /* then again */
#define CALLS_COMMS 64    /* of a rank */

/* A handle is a pointer. */
#define COMM(h) ((MPI_Comm)(h))         /* NOLINT(performance-no-int-to-ptr) */
#define TYPE(h) ((MPI_Datatype)(h))     /* NOLINT(performance-no-int-to-ptr) */
#define OP(h)   ((MPI_Op)(h))           /* NOLINT(performance-no-int-to-ptr) */
#define OURS(h) ((calls_transfer *)(h)) /* NOLINT(performance-no-int-to-ptr) */

co_mpi_module_fn cohort_mpi_module;

/* An operation of one rank. */
typedef struct calls_transfer {
    struct calls_transfer *next; /* in the rank's list */
    MPI_Request *request;        /* (room) owned */
    int n, room, first;          /* first: the first one that is not complete */
    bool forgotten;              /* nobody asks for it any more */
} calls_transfer;

typedef struct calls_rank {
    calls_transfer *under_way; /* collectives, and messages that nobody asks for */
    MPI_Comm comm[CALLS_COMMS];
    int used[CALLS_COMMS]; /* operations of it, so far */
    int n_comm;
} calls_rank;

static calls_rank *calls_ranks; /* (ranks), for the whole simulation */

static calls_rank *calls_self(void)
{
    int rank, size;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!calls_ranks)
        calls_ranks = calloc((size_t)size, sizeof(*calls_ranks));
    if (!calls_ranks)
        abort();
    return &calls_ranks[rank];
}

/* Operations of a communicator are posted in the same order on all of its ranks. */
static int calls_tag(MPI_Comm comm)
{
    calls_rank *self = calls_self();
    int i = 0;

    while (i < self->n_comm && self->comm[i] != comm)
        i++;
    if (i == CALLS_COMMS)
        abort();
    if (i == self->n_comm)
        self->comm[self->n_comm++] = comm;
    return CALLS_TAG + self->used[i]++ % CALLS_TAGS;
}

/* A message. */
static calls_transfer *calls_single(int room)
{
    calls_transfer *t = calloc(1, sizeof(*t));

    if (!t || !(t->request = calloc((size_t)room + 1, sizeof(*t->request))))
        abort();
    t->room = room;
    return t;
}

/* A collective, which advances whatever the rank asks for. */
static calls_transfer *calls_new(int room)
{
    calls_rank *self = calls_self();
    calls_transfer *t = calls_single(room);

    t->next = self->under_way;
    self->under_way = t;
    return t;
}

static void calls_free(calls_transfer *t)
{
    calls_transfer **at = &calls_self()->under_way;

    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
    free(t->request);
    free(t);
}

/* ---- messages ---- */

static bool calls_near(MPI_Comm comm, int peer)
{
    int size, world, rank;

    MPI_Comm_size(comm, &size);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(comm, &rank);
    return size == world && rank / simulate.each == peer / simulate.each;
}

static void calls_send(calls_transfer *t, const void *data, int n, MPI_Datatype type, int to,
                       int tag, MPI_Comm comm)
{
    const co_cost_link *link = calls_near(comm, to) ? &simulate.inside : &simulate.across;

    MPI_Isend(data, n, type, to, tag, comm, &t->request[t->n++]);
    if (link->overhead > 0)
        simulate_sleep(link->overhead);
}

static void calls_receive(calls_transfer *t, void *data, int n, MPI_Datatype type, int from,
                          int tag, MPI_Comm comm)
{
    MPI_Irecv(data, n, type, from, tag, comm, &t->request[t->n++]);
}

/* ---- progress ---- */

/* False: a message is under way. */
static bool calls_advance(calls_transfer *t)
{
    for (; t->first < t->n; t->first++) {
        int there = 0;

        MPI_Test(&t->request[t->first], &there, MPI_STATUS_IGNORE);
        if (!there)
            return false;
    }
    return true;
}

void simulate_progress(void)
{
    calls_transfer *next;

    for (calls_transfer *t = calls_self()->under_way; t; t = next) {
        const bool done = calls_advance(t);

        next = t->next;
        if (done && t->forgotten)
            calls_free(t);
    }
}

static int calls_test(mpi_transfer *transfer, int *done)
{
    calls_transfer *t = OURS(*transfer);

    *done = 1;
    if (!t)
        return MPI_SUCCESS;
    simulate_progress();
    *done = calls_advance(t);
    if (*done) {
        calls_free(t);
        *transfer = 0;
    }
    return MPI_SUCCESS;
}

static int calls_request_free(mpi_transfer *transfer)
{
    calls_transfer *t = OURS(*transfer);

    if (t) {
        t->forgotten = true;
        t->next = calls_self()->under_way;
        calls_self()->under_way = t;
    }
    *transfer = 0;
    return MPI_SUCCESS;
}

/* ---- the rest ---- */

static int calls_isend(const void *from, int n, mpi_type type, int to, int tag,
                       mpi_communicator comm, mpi_transfer *out)
{
    calls_transfer *t = calls_single(1);

    calls_send(t, from, n, TYPE(type), to, tag, COMM(comm));
    *out = (mpi_transfer)t;
    return MPI_SUCCESS;
}

static int calls_irecv(void *to, int n, mpi_type type, int from, int tag, mpi_communicator comm,
                       mpi_transfer *out)
{
    calls_transfer *t = calls_single(1);

    calls_receive(t, to, n, TYPE(type), from, tag, COMM(comm));
    *out = (mpi_transfer)t;
    return MPI_SUCCESS;
}

/* From the root to all at once; runs use it once, at their start. */
static int calls_ibcast(void *data, int n, mpi_type type, int root, mpi_communicator comm,
                        mpi_transfer *transfer)
{
    const int tag = calls_tag(COMM(comm));
    calls_transfer *t;
    int rank, size;

    MPI_Comm_rank(COMM(comm), &rank);
    MPI_Comm_size(COMM(comm), &size);
    t = calls_new(size);
    if (rank != root)
        calls_receive(t, data, n, TYPE(type), root, tag, COMM(comm));
    for (int peer = 0; rank == root && peer < size; peer++)
        if (peer != root)
            calls_send(t, data, n, TYPE(type), peer, tag, COMM(comm));
    *transfer = (mpi_transfer)t;
    return MPI_SUCCESS;
}

/* No strategy that is simulated uses this, nor scatter. */
static int calls_ireduce(const void *in, void *out, int n, mpi_type type, mpi_operator op, int root,
                         mpi_communicator comm, mpi_transfer *transfer)
{
    (void)in, (void)out, (void)n, (void)type, (void)op, (void)root, (void)comm, (void)transfer;
    return MPI_ERR_OTHER;
}

static ptrdiff_t calls_extent(MPI_Datatype type)
{
    MPI_Aint low, extent;

    MPI_Type_get_extent(type, &low, &extent);
    return extent;
}

/* Linear. */
static int calls_igather(const void *in, int in_n, mpi_type in_type, void *out, int out_n,
                         mpi_type out_type, int root, mpi_communicator comm, mpi_transfer *transfer)
{
    const int tag = calls_tag(COMM(comm));
    calls_transfer *t;
    int rank, size;

    MPI_Comm_rank(COMM(comm), &rank);
    MPI_Comm_size(COMM(comm), &size);
    t = calls_new(size + 1);
    for (int peer = 0; rank == root && peer < size; peer++)
        calls_receive(t, (char *)out + peer * out_n * calls_extent(TYPE(out_type)), out_n,
                      TYPE(out_type), peer, tag, COMM(comm));
    calls_send(t, in, in_n, TYPE(in_type), root, tag, COMM(comm));
    *transfer = (mpi_transfer)t;
    return MPI_SUCCESS;
}

static int calls_iscatter(const void *in, int in_n, mpi_type in_type, void *out, int out_n,
                          mpi_type out_type, int root, mpi_communicator comm,
                          mpi_transfer *transfer)
{
    (void)in, (void)in_n, (void)in_type, (void)out, (void)out_n, (void)out_type, (void)root;
    (void)comm, (void)transfer;
    return MPI_ERR_OTHER;
}

/* All receives, then all sends, each rank beginning with the next one. */
static int calls_ialltoallv(const void *in, const int *in_n, const int *in_at, mpi_type in_type,
                            void *out, const int *out_n, const int *out_at, mpi_type out_type,
                            mpi_communicator comm, mpi_transfer *transfer)
{
    const ptrdiff_t from = calls_extent(TYPE(in_type)), to = calls_extent(TYPE(out_type));
    const int tag = calls_tag(COMM(comm));
    calls_transfer *t;
    int rank, size;

    MPI_Comm_rank(COMM(comm), &rank);
    MPI_Comm_size(COMM(comm), &size);
    t = calls_new(2 * size);
    for (int k = 1; k < size; k++) {
        const int peer = (rank + size - k) % size;

        if (out_n[peer] > 0)
            calls_receive(t, (char *)out + out_at[peer] * to, out_n[peer], TYPE(out_type), peer,
                          tag, COMM(comm));
    }
    for (int k = 1; k < size; k++) {
        const int peer = (rank + k) % size;

        if (in_n[peer] > 0)
            calls_send(t, (const char *)in + in_at[peer] * from, in_n[peer], TYPE(in_type), peer,
                       tag, COMM(comm));
    }
    *transfer = (mpi_transfer)t;
    return MPI_SUCCESS;
}

static int calls_iallgatherv(const void *in, int in_n, mpi_type in_type, void *out,
                             const int *out_n, const int *out_at, mpi_type out_type,
                             mpi_communicator comm, mpi_transfer *transfer)
{
    const ptrdiff_t extent = calls_extent(TYPE(out_type));
    const int tag = calls_tag(COMM(comm));
    calls_transfer *t;
    char *own;
    int rank, size;

    MPI_Comm_rank(COMM(comm), &rank);
    MPI_Comm_size(COMM(comm), &size);
    own = (char *)out + out_at[rank] * extent;
    if (in != MPI_IN_PLACE)
        MPI_Sendrecv(in, in_n, TYPE(in_type), rank, tag, own, out_n[rank], TYPE(out_type), rank,
                     tag, COMM(comm), MPI_STATUS_IGNORE);
    t = calls_new(2 * size);
    for (int k = 1; k < size; k++) {
        const int peer = (rank + size - k) % size;

        if (out_n[peer] > 0)
            calls_receive(t, (char *)out + out_at[peer] * extent, out_n[peer], TYPE(out_type), peer,
                          tag, COMM(comm));
    }
    for (int k = 1; k < size && out_n[rank] > 0; k++)
        calls_send(t, own, out_n[rank], TYPE(out_type), (rank + k) % size, tag, COMM(comm));
    *transfer = (mpi_transfer)t;
    return MPI_SUCCESS;
}

static int calls_iallgather(const void *in, int in_n, mpi_type in_type, void *out, int out_n,
                            mpi_type out_type, mpi_communicator comm, mpi_transfer *transfer)
{
    int size, code;
    int *n;

    MPI_Comm_size(COMM(comm), &size);
    if (!(n = calloc(2 * (size_t)size, sizeof(*n))))
        abort();
    for (int i = 0; i < size; i++) {
        n[i] = out_n;
        n[size + i] = i * out_n;
    }
    code = calls_iallgatherv(in, in_n, in_type, out, n, n + size, out_type, comm, transfer);
    free(n);
    return code;
}

bool simulate_calls(co_mpi_calls *out)
{
    if (!cohort_mpi_module(CO_MPI_CALLS_VERSION, out))
        return false;
    out->no_transfer = 0;
    out->test = calls_test;
    out->request_free = calls_request_free;
    out->isend = calls_isend;
    out->irecv = calls_irecv;
    out->ibcast = calls_ibcast;
    out->ireduce = calls_ireduce;
    out->igather = calls_igather;
    out->iscatter = calls_iscatter;
    out->ialltoallv = calls_ialltoallv;
    out->iallgatherv = calls_iallgatherv;
    out->iallgather = calls_iallgather;
    return true;
}
