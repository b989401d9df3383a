/*
 * captured.c - ranks capture the same operations, and replay the same step.
 *
 * Says nothing of what else a step does, and nothing of NCCL but that it has the operations.
 */
#include "comm/captured.h"

#include <stdio.h>
#include <string.h>

#include "comm/comm_internal.h"
#include "comm/nccl_internal.h"
#include "core/hash.h"
#include "core/mem.h"
#include "device/device.h"

#define CAPTURED_MARKS 255 /* operations that are counted: what a byte holds */

bool co_comm_captures(const co_comm *comm)
{
    return comm->size == 1 ? comm->ops->memory & 1U << CO_MEMORY_DEVICE : comm->nccl != NULL;
}

/* ---- over the transport ---- */

/* `bytes` of each rank to all. `first`: what would come next; NULL: nothing is known of it. */
static co_status captured_gather(co_comm *comm, const void *mine, void *all, size_t bytes,
                                 const co_coll_args *first)
{
    const co_coll_args args = {
        .coll = CO_COLL_ALLGATHER, .in = mine, .out = all, .count = bytes, .dtype = CO_U8};
    co_request *request = NULL;
    co_status st;

    if (comm->staged)
        CO_TRY(co_staged_flush(comm));
    CO_TRY(comm->ops->post(&request, comm, &args));
    request->whole = first;
    co_watch_post(comm, request, first ? first : &args);
    st = co_request_wait(request);
    co_request_destroy(request);
    return st;
}

/* ---- captures ---- */

void co_nccl_captured_add(co_comm_captured *c, const co_coll_args *args)
{
    const co_coll_descriptor d = co_comm_descriptor(args, (uint32_t)c->n);

    if (c->n == 0)
        c->first = *args;
    c->hash = co_hash(c->hash, &d, sizeof(d));
    if (c->n < c->cap)
        c->op[c->n] = d;
    c->n++;
}

int co_nccl_captured_mark(const co_comm_captured *c)
{
    return c->n < CAPTURED_MARKS ? (int)c->n : CAPTURED_MARKS;
}

char *co_nccl_describe_replay(char *out, size_t size, const co_comm *comm)
{
    const co_comm_captured *c = comm->nccl ? comm->nccl->replayed : NULL;
    char next[CO_COMM_DESCRIBE_MAX];
    size_t done;

    *out = 0;
    if (!c || c->n == 0)
        return out;
    done = __atomic_load_n(comm->nccl->mark, __ATOMIC_RELAXED);
    if (done < c->n && done < CAPTURED_MARKS)
        snprintf(out, size,
                 "; of the step's %zu operations with other ranks %zu are done, next is %s", c->n,
                 done, co_comm_describe(next, sizeof(next), &c->op[done]));
    else
        snprintf(out, size, "; of the step's %zu operations with other ranks %zu or more are done",
                 c->n, done);
    return out;
}

static co_status captured_create(co_comm_captured **out, co_comm *comm)
{
    co_comm_captured *c = co_calloc(1, sizeof(*c));

    if (!c)
        return CO_E_NOMEM;
    c->comm = comm;
    c->hash = CO_HASH;
    c->cap = CAPTURED_OPS;
    c->op = co_calloc(c->cap, sizeof(*c->op));
    if (!c->op) {
        co_free(c);
        return CO_E_NOMEM;
    }
    *out = c;
    return CO_OK;
}

void co_comm_captured_destroy(co_comm_captured *c)
{
    if (!c)
        return;
    co_capture_destroy(c->capture);
    if (c->comm->nccl && c->comm->nccl->replayed == c)
        c->comm->nccl->replayed = NULL;
    co_free(c->op);
    co_free(c);
}

bool co_comm_captured_is_current(const co_comm_captured *c)
{
    return !c->comm->nccl || c->comm->nccl->rooms == c->rooms;
}

/* Names the first operation that is not the same on all ranks. */
static co_status captured_find_difference(const co_comm_captured *c, const co_nccl_word *word,
                                          int other)
{
    char a[CO_COMM_DESCRIBE_MAX], b[CO_COMM_DESCRIBE_MAX];
    co_comm *comm = c->comm;
    size_t n = c->cap;
    co_coll_descriptor *all;
    co_status st;

    for (int p = 0; p < comm->size; p++)
        n = word[p].n < n ? word[p].n : n;
    all = co_calloc(n ? (size_t)comm->size * n : 1, sizeof(*all));
    if (!all)
        return CO_E_NOMEM;
    st = n ? captured_gather(comm, c->op, all, n * sizeof(*all), NULL) : CO_OK;
    for (size_t i = 0; st == CO_OK && i < n; i++) {
        const co_coll_descriptor *theirs = &all[(size_t)other * n + i];

        if (memcmp(theirs, &c->op[i], sizeof(*theirs)) != 0)
            st = co_fail(CO_E_MISMATCH,
                         "rank %d calls %s where rank %d calls %s, operation %zu of a step", other,
                         co_comm_describe(a, sizeof(a), theirs), comm->rank,
                         co_comm_describe(b, sizeof(b), &c->op[i]), i + 1);
    }
    if (st == CO_OK)
        st = co_fail(CO_E_MISMATCH, "rank %d calls %llu operations in a step, rank %d %zu", other,
                     (unsigned long long)word[other].n, comm->rank, c->n);
    co_free(all);
    return st;
}

static bool captured_is_equal(const co_nccl_word *a, const co_nccl_word *b)
{
    return a->hash == b->hash && a->n == b->n;
}

/* All ranks find that some differ, and each names one that differs from it. */
static co_status captured_compare(const co_comm_captured *c)
{
    const co_nccl_word mine = {.hash = c->hash, .n = c->n};
    co_comm *comm = c->comm;
    bool differ = false;
    co_nccl_word *all;
    int other = 0;

    if (comm->size == 1)
        return CO_OK;
    all = comm->nccl->word;
    CO_TRY(captured_gather(comm, &mine, all, sizeof(mine), NULL));
    for (int p = 0; p < comm->size; p++) {
        differ |= !captured_is_equal(&all[p], &all[0]);
        if (!captured_is_equal(&all[p], &mine))
            other = p;
    }
    return differ ? captured_find_difference(c, all, other) : CO_OK;
}

/* What is captured, from the first to the last. */
typedef struct captured_body {
    co_comm *comm;
    co_queue *queue;
    co_status (*body)(void *arg);
    void *arg;
} captured_body;

static co_status captured_run(void *arg)
{
    const captured_body *b = arg;

    if (b->comm->nccl)
        CO_TRY(co_queue_fill(b->queue, b->comm->nccl->mark, 0, 1));
    return b->body(b->arg);
}

static co_status captured_take(co_comm_captured *c, captured_body *body)
{
    co_comm *comm = c->comm;
    const uint64_t sent = comm->bytes_sent;
    co_status st;

    if (comm->nccl)
        comm->nccl->capturing = c;
    st = co_capture_create(&c->capture, body->queue, captured_run, body);
    if (comm->nccl) {
        comm->nccl->capturing = NULL;
        c->rooms = comm->nccl->rooms;
        co_nccl_drop_captured(comm->nccl);
    }
    c->bytes = comm->bytes_sent - sent;
    comm->bytes_sent = sent;
    return st == CO_OK ? captured_compare(c) : st;
}

co_status co_comm_capture(co_comm_captured **out, co_comm *comm, co_queue *queue,
                          co_status (*body)(void *arg), void *arg)
{
    captured_body all = {comm, queue, body, arg};
    co_comm_captured *c = NULL;
    co_status st;

    CO_TRY(captured_create(&c, comm));
    st = co_comm_settle(comm, captured_take(c, &all));
    if (st == CO_OK)
        *out = c;
    else
        co_comm_captured_destroy(c);
    return st;
}

co_status co_comm_replay(co_comm_captured *c, co_queue *queue)
{
    CO_TRY(co_capture_replay(c->capture, queue));
    c->comm->bytes_sent += c->bytes;
    if (c->comm->nccl)
        c->comm->nccl->replayed = c;
    return CO_OK;
}

/* ---- before a step ---- */

static co_status captured_settle(co_comm_give *give, const co_comm *comm, const co_nccl_word *all)
{
    const co_nccl_word *mine = &all[comm->rank];

    for (int p = 0; p < comm->size; p++) {
        if (all[p].step != mine->step)
            return co_fail(CO_E_MISMATCH, "rank %d begins step %llu where rank %d begins step %llu",
                           p, (unsigned long long)all[p].step, comm->rank,
                           (unsigned long long)mine->step);
        if (all[p].batch != mine->batch)
            return co_fail(CO_E_MISMATCH,
                           "rank %d and rank %d divide the batch of step %llu differently", p,
                           comm->rank, (unsigned long long)mine->step);
        if (all[p].give < *give)
            *give = (co_comm_give)all[p].give;
    }
    for (int p = 0; *give == CO_GIVE_REPLAY && p < comm->size; p++)
        if (!captured_is_equal(&all[p], mine))
            return co_fail(CO_E_MISMATCH,
                           "rank %d replays a step of %llu operations in step %llu where rank %d "
                           "replays another of %llu",
                           p, (unsigned long long)all[p].n, (unsigned long long)mine->step,
                           comm->rank, (unsigned long long)mine->n);
    return CO_OK;
}

static co_status captured_agree(co_comm_give *give, co_comm *comm, const co_nccl_word *mine,
                                const co_coll_args *first)
{
    co_nccl_word *all = comm->nccl->word;

    CO_TRY(captured_gather(comm, mine, all, sizeof(*mine), first));
    return captured_settle(give, comm, all);
}

co_status co_comm_agree(co_comm_give *give, co_comm *comm, uint64_t step, uint64_t batch,
                        const co_comm_captured *c)
{
    const co_nccl_word mine = {.step = step,
                               .batch = batch,
                               .hash = c ? c->hash : 0,
                               .n = c ? c->n : 0,
                               .give = (uint32_t)*give};

    if (comm->size == 1)
        return CO_OK;
    return co_comm_settle(comm, captured_agree(give, comm, &mine, c && c->n ? &c->first : NULL));
}
