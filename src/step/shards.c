/*
 * shards.c - running statistics and figures of a step, independent of the number of ranks.
 *
 * Each shard updates the running statistics from their values before the step; the new ones are the
 * mean over shards, weighted by samples. Loss and counts are sums over shards. All of it is one
 * short array that is summed by the tree like the gradient. Does not know the training loop.
 */
#include "step/shards.h"

#include <string.h>

#include "core/mem.h"

enum { SHARDS_LOSS, SHARDS_CORRECT, SHARDS_CORRECT5, SHARDS_COUNT, SHARDS_FIGURES };

static size_t shards_size(const co_shards *shards)
{
    return shards->store->n_buffer + SHARDS_FIGURES;
}

co_status co_shards_open(co_shards *shards, const co_tree *tree, co_comm *comm, co_store *store)
{
    const int rank = co_comm_rank(comm);

    if (!tree)
        return CO_OK;
    if (store->ring)
        return co_fail(CO_E_UNSUPPORTED,
                       "shards: running statistics and figures of shards are added "
                       "up on the host, which cannot access those on the device; "
                       "let shards be auto");
    shards->tree = tree;
    shards->comm = comm;
    shards->store = store;
    shards->first = co_tree_first(tree, rank);
    shards->n = co_tree_first(tree, rank + 1) - shards->first;
    shards->start = co_calloc(store->n_buffer + 1, sizeof(*shards->start));
    shards->term = co_calloc_aligned(shards_size(shards), sizeof(*shards->term));
    if (!shards->start || !shards->term)
        return CO_E_NOMEM;
    return co_tree_sum_init(&shards->sum, tree, rank, shards_size(shards), store->vector,
                            store->queue);
}

void co_shards_close(co_shards *shards)
{
    const co_status st = co_error_status();

    /* This rank failed within a step; do not make the others wait for it. */
    if (shards->request)
        co_comm_abort(shards->comm, st == CO_OK ? CO_E_FAILED : st, co_error_message());
    co_request_destroy(shards->request);
    co_tree_sum_fini(&shards->sum);
    co_free(shards->start);
    co_free(shards->term);
    memset(shards, 0, sizeof(*shards));
}

void co_shards_start(co_shards *shards)
{
    const co_store *store = shards->store;

    store->vector->copy(store->queue, shards->start, store->buffer, store->n_buffer);
    co_tree_sum_start(&shards->sum);
}

co_status co_shards_forward_done(co_shards *shards, const co_result *figures, double share,
                                 bool last)
{
    const co_store *store = shards->store;
    const size_t n = store->n_buffer, size = shards_size(shards);
    float *term = shards->term;

    if (share > 0)
        store->vector->scale(store->queue, term, share, store->buffer, n);
    else
        store->vector->zero(store->queue, term, n);
    term[n + SHARDS_LOSS] = (float)figures->loss_sum;
    term[n + SHARDS_CORRECT] = (float)figures->correct;
    term[n + SHARDS_CORRECT5] = (float)figures->correct5;
    term[n + SHARDS_COUNT] = (float)figures->count;
    store->vector->copy(store->queue, store->buffer, shards->start, n);
    if (!last) {
        co_tree_sum_push(&shards->sum, term);
        return CO_OK;
    }
    co_tree_sum_close(&shards->sum, term, 0, size);
    (void)co_tree_sum_parts(shards->part, &shards->sum, term, 0);
    return co_comm_itree_allreduce(&shards->request, shards->comm, shards->tree, term, shards->part,
                                   size, CO_F32);
}

co_status co_shards_finish(co_result *out, co_shards *shards)
{
    const co_store *store = shards->store;
    const size_t n = store->n_buffer;
    const float *figure = shards->term + n;

    CO_TRY(co_request_wait(shards->request));
    co_request_destroy(shards->request);
    shards->request = NULL;
    store->vector->copy(store->queue, store->buffer, shards->term, n);
    *out = (co_result){.count = (uint64_t)figure[SHARDS_COUNT],
                       .loss_sum = (double)figure[SHARDS_LOSS],
                       .correct = (uint64_t)figure[SHARDS_CORRECT],
                       .correct5 = (uint64_t)figure[SHARDS_CORRECT5]};
    return CO_OK;
}
