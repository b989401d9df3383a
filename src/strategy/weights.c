/*
 * weights.c - makes the weights of all ranks equal. Does not know when, or what ranks do in
 * between.
 *
 * A rank's weights count by its share of the samples used since the ranks last had equal weights,
 * n_k / n: a rank that saw twice as many has moved further for a reason, and one that saw none
 * contributes nothing. Every rank knows n and its own n_k without communication. Running statistics
 * are averaged with the same shares, because they describe these weights on those samples.
 */
#include "strategy/weights.h"

#include "comm/queued.h"
#include "tensor/store.h"

static co_status weights_send(const co_strategy *strategy, co_store_array array, size_t n)
{
    float *values = NULL;
    co_status st;

    CO_TRY(co_store_map(&values, strategy->store, array));
    st = co_comm_bcast(strategy->comm, values, n, CO_F32, 0);
    CO_TRY(co_store_unmap(strategy->store, array, values, st == CO_OK));
    return st;
}

co_status co_weights_broadcast(const co_strategy *strategy)
{
    CO_TRY(weights_send(strategy, CO_STORE_PARAM, strategy->store->n));
    return weights_send(strategy, CO_STORE_BUFFER, strategy->store->n_buffer);
}

uint64_t *co_weights_counters(co_weights_used *used, size_t *n)
{
    *n = sizeof(used->count) / sizeof(used->count[0]);
    return used->count;
}

void co_weights_allow(co_strategy *strategy, const co_strategy_step *step)
{
    strategy->update_end = step->local ? strategy->store->n : 0;
}

void co_weights_count(co_weights_used *used, const co_strategy_step *step)
{
    used->count[0] += step->local;
    used->count[1] += step->global;
}

/* The share stays a double: rounded to float it would scale all weights the same way at every
   average. */
static co_status weights_combine(const co_strategy *strategy, float *x, size_t n, double share)
{
    const co_store *store = strategy->store;
    const co_coll_args args = {.coll = CO_COLL_ALLREDUCE,
                               .in = x,
                               .out = x,
                               .count = n,
                               .dtype = CO_F32,
                               .op = CO_SUM,
                               .queue = store->queue};

    store->vector->scale(store->queue, x, share, x, n);
    return co_comm_enqueue_run(strategy->comm, &args);
}

double co_weights_share(const co_weights_used *used)
{
    return used->count[1] ? (double)used->count[0] / (double)used->count[1] : 0;
}

co_status co_weights_average(co_weights_used *used, const co_strategy *strategy)
{
    const co_store *store = strategy->store;
    double share;

    if (used->count[1] == 0)
        return CO_OK;
    share = co_weights_share(used);
    *used = (co_weights_used){{0, 0}};
    CO_TRY(weights_combine(strategy, store->param, store->n, share));
    return weights_combine(strategy, store->buffer, store->n_buffer, share);
}
