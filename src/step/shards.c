/*
 * shards.c - running statistics and figures of a step, independent of the number of ranks.
 *
 * Each shard updates the running statistics from their values before the step; the new ones are the
 * mean over shards, weighted by samples. Loss and counts are sums over shards. All of it is one
 * short array that is summed by the tree like the gradient; with a device statistics are there, and
 * figures are summed on the host once they have been read. Does not know the training loop.
 */
#include "step/shards.h"

#include <string.h>

#include "comm/queued.h"
#include "core/mem.h"
#include "device/device.h"
#include "tensor/vector.h"

enum { SHARDS_LOSS, SHARDS_CORRECT, SHARDS_CORRECT5, SHARDS_COUNT, SHARDS_FIGURES };

/* ---- one sum ---- */

static co_status shards_sum_open(co_shards_sum *s, const co_shards *shards, size_t n,
                                 const co_vector_ops *vector, co_queue *queue)
{
    void *term = NULL;

    CO_TRY(co_device_alloc(&term, co_queue_device(queue), n * sizeof(*s->term), CO_MEMORY_DEVICE));
    s->term = term;
    s->n = n;
    return co_tree_sum_init(&s->sum, shards->tree, co_comm_rank(shards->comm), n, vector, queue);
}

static void shards_sum_close(co_shards_sum *s, co_comm *comm)
{
    if (s->request)
        co_comm_abandon(comm);
    co_request_destroy(s->request);
    co_device_free(co_queue_device(s->sum.queue), s->term, CO_MEMORY_DEVICE);
    co_tree_sum_fini(&s->sum);
}

/* s->term is that of the next shard; the rank's last one starts the sum over all. An empty one (of
   a network without running statistics) is none. */
static co_status shards_sum_add(co_shards_sum *s, const co_shards *shards, bool last)
{
    const co_coll_args args = {.coll = CO_COLL_TREE,
                               .in = (const void *)s->part,
                               .out = s->term,
                               .count = s->n,
                               .dtype = CO_F32,
                               .op = CO_SUM,
                               .tree = shards->tree,
                               .queue = s->sum.queue};

    if (s->n == 0)
        return CO_OK;
    if (!last) {
        co_tree_sum_push(&s->sum, s->term);
        return CO_OK;
    }
    co_tree_sum_close(&s->sum, s->term, 0, s->n);
    (void)co_tree_sum_parts(s->part, &s->sum, s->term, 0);
    return co_comm_enqueue(&s->request, shards->comm, &args);
}

static co_status shards_sum_finish(co_shards_sum *s)
{
    if (!s->request)
        return CO_OK;
    CO_TRY(co_request_order(s->request, s->sum.queue));
    co_request_destroy(s->request);
    s->request = NULL;
    return CO_OK;
}

/* ---- figures ---- */

static void shards_put(float *to, const co_result *figures)
{
    to[SHARDS_LOSS] = (float)figures->loss_sum;
    to[SHARDS_CORRECT] = (float)figures->correct;
    to[SHARDS_CORRECT5] = (float)figures->correct5;
    to[SHARDS_COUNT] = (float)figures->count;
}

static co_result shards_get(const float *from)
{
    return (co_result){.count = (uint64_t)from[SHARDS_COUNT],
                       .loss_sum = (double)from[SHARDS_LOSS],
                       .correct = (uint64_t)from[SHARDS_CORRECT],
                       .correct5 = (uint64_t)from[SHARDS_CORRECT5]};
}

/* ---- a step ---- */

co_status co_shards_open(co_shards *shards, const co_tree *tree, co_comm *comm, co_store *store)
{
    const int rank = co_comm_rank(comm);
    const bool late = store->ring;
    const size_t n = store->n_buffer;
    void *start = NULL;

    if (!tree)
        return CO_OK;
    shards->tree = tree;
    shards->comm = comm;
    shards->store = store;
    shards->first = co_tree_first(tree, rank);
    shards->n = co_tree_first(tree, rank + 1) - shards->first;
    CO_TRY(co_device_alloc(&start, store->device, n * sizeof(*shards->start), CO_MEMORY_DEVICE));
    shards->start = start;
    CO_TRY(shards_sum_open(&shards->main, shards, late ? n : n + SHARDS_FIGURES, store->vector,
                           store->queue));
    return late ? shards_sum_open(&shards->late, shards, SHARDS_FIGURES, co_vector_host(), NULL)
                : CO_OK;
}

void co_shards_close(co_shards *shards)
{
    if (!shards->tree)
        return;
    shards_sum_close(&shards->main, shards->comm);
    shards_sum_close(&shards->late, shards->comm);
    co_device_free(shards->store->device, shards->start, CO_MEMORY_DEVICE);
    memset(shards, 0, sizeof(*shards));
}

void co_shards_start(co_shards *shards)
{
    const co_store *store = shards->store;

    store->vector->copy(store->queue, shards->start, store->buffer, store->n_buffer);
    co_tree_sum_start(&shards->main.sum);
}

co_status co_shards_forward_done(co_shards *shards, const co_result *figures, double share,
                                 bool last)
{
    const co_store *store = shards->store;
    const size_t n = store->n_buffer;
    float *term = shards->main.term;

    if (share > 0)
        store->vector->scale(store->queue, term, share, store->buffer, n);
    else
        store->vector->zero(store->queue, term, n);
    if (!store->ring)
        shards_put(term + n, figures);
    store->vector->copy(store->queue, store->buffer, shards->start, n);
    return shards_sum_add(&shards->main, shards, last);
}

co_status co_shards_finish(co_result *out, co_shards *shards)
{
    const co_store *store = shards->store;

    CO_TRY(shards_sum_finish(&shards->main));
    store->vector->copy(store->queue, store->buffer, shards->main.term, store->n_buffer);
    if (!store->ring)
        *out = shards_get(shards->main.term + store->n_buffer);
    return CO_OK;
}

co_status co_shards_take_late(co_result *out, co_shards *shards, const co_result *figures)
{
    co_shards_sum *sum = &shards->late;

    co_tree_sum_start(&sum->sum);
    for (int i = 0; i < shards->n; i++) {
        shards_put(sum->term, &figures[i]);
        CO_TRY(shards_sum_add(sum, shards, i + 1 == shards->n));
    }
    CO_TRY(shards_sum_finish(sum));
    *out = shards_get(sum->term);
    return CO_OK;
}
