/*
 * nccl.c - NCCL without GPUs: operations. Ranks, which are processes of one machine, exchange
 * through a file in memory, by messages. Every function and type that Cohort does not use is
 * refused.
 */
#include <stdlib.h>
#include <string.h>

#include "standin/nccl_comm.h"

#define GROUP 512 /* operations */

/* ---- messages ---- */

typedef struct message {
    unsigned char *at;
    size_t bytes, done;
    int peer;
    bool send, registered;
} message;

/* Whether one before it goes the same way, and is not done. */
static bool is_behind(const message *all, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (all[j].done < all[j].bytes && all[j].peer == all[i].peer && all[j].send == all[i].send)
            return true;
    return false;
}

static bool advance(struct ncclComm *comm, message *m)
{
    box *b =
        m->send ? &comm->shared->box[comm->rank][m->peer] : &comm->shared->box[m->peer][comm->rank];
    const uint32_t there = atomic_load(&b->bytes);
    const size_t left = m->bytes - m->done;

    if (m->send == (there != 0))
        return false;
    if (m->send) {
        const uint32_t now = (uint32_t)(left < BOX ? left : BOX);

        memcpy(b->data, m->at + m->done, now);
        b->registered = m->registered;
        m->done += now;
        atomic_store(&b->bytes, now);
    } else {
        if (there > left || b->registered != m->registered)
            abort(); /* ranks that do not do the same, whom Cohort keeps from it */
        memcpy(m->at + m->done, b->data, there);
        m->done += there;
        atomic_store(&b->bytes, 0);
    }
    return true;
}

/* False: aborted. */
static bool exchange(struct ncclComm *comm, message *all, size_t n)
{
    for (size_t left = n; left > 0;) {
        bool moved = false;

        left = 0;
        for (size_t i = 0; i < n; i++) {
            if (all[i].done < all[i].bytes && !is_behind(all, i))
                moved |= advance(comm, &all[i]);
            left += all[i].done < all[i].bytes;
        }
        if (atomic_load(&comm->aborted))
            return false;
        if (!moved && left)
            co_clock_sleep_us(POLL_US);
    }
    return true;
}

/* ---- operations ---- */

typedef enum op_kind {
    SEND,
    RECV,
    ALL_REDUCE,
    REDUCE,
    BROADCAST,
    ALL_GATHER,
    REDUCE_SCATTER
} op_kind;

typedef struct operation {
    op_kind kind;
    const void *in;
    void *out;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer;
} operation;

typedef struct job {
    struct ncclComm *comm;
    bool in_graph;
    size_t n;
    operation op[];
} job;

static size_t type_size(ncclDataType_t type)
{
    return type == ncclFloat64 || type == ncclInt64      ? 8
           : type == ncclFloat32 || type == ncclInt32    ? 4
           : type == ncclFloat16 || type == ncclBfloat16 ? 2
                                                         : 1;
}

static void combine_float(float *to, const float *from, size_t n, ncclRedOp_t op)
{
    for (size_t i = 0; i < n; i++)
        to[i] = op == ncclMax ? (to[i] > from[i] ? to[i] : from[i]) : to[i] + from[i];
}

static void combine_int(int32_t *to, const int32_t *from, size_t n, ncclRedOp_t op)
{
    for (size_t i = 0; i < n; i++)
        to[i] = op == ncclMax ? (to[i] > from[i] ? to[i] : from[i]) : to[i] + from[i];
}

static void add_double(double *to, const double *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* In the order of ranks, from blocks one after another. */
static void combine(void *out, unsigned char *blocks, const operation *o, int ranks)
{
    const size_t bytes = o->count * type_size(o->type);
    float *to = out;

    memcpy(out, blocks, bytes);
    for (int p = 1; p < ranks; p++)
        if (o->type == ncclFloat32)
            combine_float(out, (const float *)(const void *)(blocks + (size_t)p * bytes), o->count,
                          o->op);
        else if (o->type == ncclFloat64)
            add_double(out, (const double *)(const void *)(blocks + (size_t)p * bytes), o->count);
        else
            combine_int(out, (const int32_t *)(const void *)(blocks + (size_t)p * bytes), o->count,
                        o->op);
    for (size_t i = 0; o->op == ncclAvg && i < o->count; i++)
        to[i] /= (float)ranks;
}

/* Each rank's block of `bytes` for each other, into `blocks`: `in` has one, or one for each. */
static bool trade(struct ncclComm *comm, unsigned char *blocks, unsigned char *in, size_t bytes,
                  bool each, bool of_registered)
{
    message all[2 * RANKS];
    size_t n = 0;

    for (int p = 0; p < comm->ranks; p++) {
        unsigned char *mine = in + (each ? (size_t)p * bytes : 0);
        unsigned char *theirs = blocks + (size_t)p * bytes;

        if (p == comm->rank) {
            memmove(theirs, mine, bytes);
            continue;
        }
        all[n++] = (message){mine, bytes, 0, p, true, of_registered};
        all[n++] = (message){theirs, bytes, 0, p, false, of_registered};
    }
    return exchange(comm, all, n);
}

static void run_broadcast(struct ncclComm *comm, const operation *o, void *out)
{
    const size_t bytes = o->count * type_size(o->type);
    message all[RANKS];
    size_t n = 0;

    for (int p = 0; p < comm->ranks; p++)
        if (p != comm->rank && (p == o->peer || comm->rank == o->peer))
            all[n++] =
                (message){out, bytes, 0, p, comm->rank == o->peer, is_registered(comm, o->out)};
    (void)exchange(comm, all, n);
}

static void run_collective(struct ncclComm *comm, const operation *o, void *in, void *out)
{
    const bool both = is_registered(comm, o->in), bare = !is_registered(comm, o->out);
    const size_t bytes = o->count * type_size(o->type);
    unsigned char *blocks;

    if (o->kind != BROADCAST && both == bare)
        abort(); /* one of the two */
    if (o->kind == BROADCAST) {
        run_broadcast(comm, o, out);
        return;
    }
    if (o->kind == ALL_GATHER) {
        (void)trade(comm, out, in, bytes, false, both);
        return;
    }
    blocks = malloc((size_t)comm->ranks * bytes);
    if (!blocks)
        abort();
    if (trade(comm, blocks, in, bytes, o->kind == REDUCE_SCATTER, both) &&
        (o->kind != REDUCE || o->peer == comm->rank))
        combine(out, blocks, o, comm->ranks);
    free(blocks);
}

static void run_messages(struct ncclComm *comm, const job *j, mock_memory *memory)
{
    message *all = calloc(j->n, sizeof(*all));

    if (!all)
        abort();
    for (size_t i = 0; i < j->n; i++) {
        const operation *o = &j->op[i];
        const bool send = o->kind == SEND;

        all[i] = (message){mock_memory_reach(memory, send ? o->in : o->out),
                           o->count * type_size(o->type),
                           0,
                           o->peer,
                           send,
                           is_registered(j->comm, send ? o->in : o->out)};
    }
    (void)exchange(comm, all, j->n);
    free(all);
}

static co_status run(void *what, mock_memory *memory)
{
    job *j = what;
    const operation *o = j->op;

    atomic_fetch_add(&j->comm->running, 1);
    if (atomic_load(&j->comm->aborted))
        ; /* what it exchanges by may be gone */
    else if (o->kind == SEND || o->kind == RECV)
        run_messages(j->comm, j, memory);
    else
        run_collective(j->comm, o, mock_memory_reach(memory, o->in),
                       mock_memory_reach(memory, o->out));
    atomic_fetch_sub(&j->comm->running, 1);
    if (!j->in_graph)
        atomic_fetch_sub(&j->comm->jobs, 1);
    return CO_OK;
}

/* ---- groups: several messages, or one operation of all ranks ---- */

static _Thread_local struct {
    bool open;
    size_t n;
    struct ncclComm *comm;
    co_queue *queue;
    operation op[GROUP];
} group;

ncclResult_t ncclGroupStart(void); /* which the header lets pass without a prototype */
ncclResult_t ncclGroupEnd(void);

STANDIN_EXPORT ncclResult_t ncclGroupStart(void)
{
    if (group.open)
        return ncclInvalidUsage;
    group.open = true;
    group.n = 0;
    return ncclSuccess;
}

static ncclResult_t add(ncclComm_t comm, cudaStream_t stream, const operation *o)
{
    const bool sends = o->kind == SEND || o->kind == RECV;
    const bool reduces = o->kind == ALL_REDUCE || o->kind == REDUCE || o->kind == REDUCE_SCATTER;
    const bool known = o->type == ncclFloat32 || (o->type == ncclInt32 && o->op != ncclAvg) ||
                       (o->type == ncclFloat64 && o->op == ncclSum);

    if (!group.open || group.n == GROUP ||
        (group.n > 0 && (!sends || group.op[0].kind > RECV || group.comm != comm)))
        return ncclInvalidUsage;
    if (o->count == 0 || o->peer < 0 || o->peer >= comm->ranks ||
        (sends && o->peer == comm->rank) ||
        (reduces && (!known || (o->op != ncclSum && o->op != ncclMax && o->op != ncclAvg))))
        return ncclInvalidArgument;
    group.comm = comm;
    group.queue = (co_queue *)(void *)stream;
    group.op[group.n++] = *o;
    return ncclInProgress;
}

STANDIN_EXPORT ncclResult_t ncclGroupEnd(void)
{
    const size_t bytes = sizeof(job) + group.n * sizeof(operation);
    job *j;
    co_status st;

    if (!group.open)
        return ncclInvalidUsage;
    group.open = false;
    if (group.n == 0)
        return ncclSuccess;
    j = malloc(bytes);
    if (!j)
        return ncclSystemError;
    j->comm = group.comm;
    j->n = group.n;
    j->in_graph = ((const mock_queue *)group.queue)->capture != NULL;
    memcpy(j->op, group.op, group.n * sizeof(operation));
    if (!j->in_graph)
        atomic_fetch_add(&group.comm->jobs, 1);
    group.comm->asked = 0;
    st = mock_enqueue(group.queue, run, j, bytes);
    free(j);
    return st == CO_OK ? ncclInProgress : ncclUnhandledCudaError;
}

STANDIN_EXPORT ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer,
                                     ncclComm_t comm, cudaStream_t stream)
{
    const operation o = {.kind = SEND, .in = in, .count = count, .type = type, .peer = peer};

    return add(comm, stream, &o);
}

STANDIN_EXPORT ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer,
                                     ncclComm_t comm, cudaStream_t stream)
{
    const operation o = {.kind = RECV, .out = out, .count = count, .type = type, .peer = peer};

    return add(comm, stream, &o);
}

STANDIN_EXPORT ncclResult_t ncclAllReduce(const void *in, void *out, size_t count,
                                          ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                          cudaStream_t stream)
{
    const operation o = {ALL_REDUCE, in, out, count, type, op, 0};

    return add(comm, stream, &o);
}

STANDIN_EXPORT ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                                       ncclRedOp_t op, int root, ncclComm_t comm,
                                       cudaStream_t stream)
{
    const operation o = {REDUCE, in, out, count, type, op, root};

    return add(comm, stream, &o);
}

STANDIN_EXPORT ncclResult_t ncclBroadcast(const void *in, void *out, size_t count,
                                          ncclDataType_t type, int root, ncclComm_t comm,
                                          cudaStream_t stream)
{
    const operation o = {
        .kind = BROADCAST, .in = in, .out = out, .count = count, .type = type, .peer = root};

    return in == out ? add(comm, stream, &o) : ncclInvalidArgument;
}

STANDIN_EXPORT ncclResult_t ncclAllGather(const void *in, void *out, size_t count,
                                          ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    const operation o = {.kind = ALL_GATHER, .in = in, .out = out, .count = count, .type = type};

    return add(comm, stream, &o);
}

STANDIN_EXPORT ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count,
                                              ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                              cudaStream_t stream)
{
    const operation o = {REDUCE_SCATTER, in, out, count, type, op, 0};

    return add(comm, stream, &o);
}
