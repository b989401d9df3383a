/*
 * shared.c - one array of weights for all ranks. Does not know which rank may write what, or when.
 */
#include "strategy/shared.h"

#include "strategy/weights.h"
#include "tensor/store.h"

/* Never 0, because a window cannot be empty. */
static size_t shared_bytes(const co_store *store)
{
    return (store->n + CO_STORE_ALIGN) * sizeof(float);
}

co_status co_shared_open(float **weights, const co_strategy *strategy, co_comm *local)
{
    co_store *store = strategy->store;
    void *window;

    CO_TRY(co_weights_broadcast(strategy));
    CO_TRY(co_comm_window_create(&window, local, shared_bytes(store)));
    *weights = window;
    if (co_comm_rank(local) == 0)
        store->vector->copy(store->queue, *weights, store->param, store->n);
    CO_TRY(co_comm_barrier(local));
    co_store_lend_param(store, *weights);
    return CO_OK;
}

void co_shared_close(const co_strategy *strategy, co_comm *local, float *weights)
{
    if (!weights)
        return;
    co_store_take_param(strategy->store);
    co_comm_window_destroy(local, weights, shared_bytes(strategy->store));
}
