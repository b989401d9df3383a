/*
 * overflow.c - restores what a step has changed before its gradients turn out to overflow.
 *
 * Does not know how an overflow is detected (loss_scale.c, update.c), or who reports it.
 */
#include "step/overflow.h"

#include <math.h>
#include <string.h>

co_status co_overflow_open(co_overflow *overflow, co_distributed *distributed, co_store *store)
{
    overflow->distributed = distributed;
    overflow->store = store;
    if (!co_scaler_is_on(co_distributed_scaler(distributed)))
        return CO_OK;
    return co_store_take_array(&overflow->kept, store, store->n_buffer);
}

void co_overflow_close(co_overflow *overflow)
{
    if (overflow->store)
        co_store_give_array(overflow->store, overflow->kept);
    overflow->kept = NULL;
}

void co_overflow_keep(co_overflow *overflow)
{
    const co_store *store = overflow->store;

    if (overflow->kept)
        store->vector->copy(store->queue, overflow->kept, store->buffer, store->n_buffer);
}

bool co_overflow_forgive(co_overflow *overflow, co_result *part)
{
    if (!overflow->kept || isfinite(part->loss_sum))
        return false;
    memset(part, 0, sizeof(*part));
    if (!overflow->store->ring) /* with a device, its values have this already */
        co_distributed_note_overflow(overflow->distributed);
    return true;
}

void co_overflow_settle(co_overflow *overflow)
{
    co_store *store = overflow->store;

    if (!overflow->kept)
        return;
    store->vector->copy_if(store->queue, &store->values->found_inf, store->buffer, overflow->kept,
                           store->n_buffer);
}
