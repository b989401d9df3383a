/*
 * ema.c - an exponential moving average of the weights, in one pass over the flat store.
 *
 * Every rank computes it: with equal weights the averages are equal, without communication. Running
 * statistics differ between ranks, but the mean over ranks of their averages is the average of
 * their means. Does not know evaluation or files.
 */
#include "step/ema.h"

#include "core/mem.h"
#include "tensor/values.h"

co_status co_ema_create(co_ema **out, const co_ema_options *options, const co_store *store)
{
    co_ema *ema = co_calloc(1, sizeof(*ema));
    co_status st;

    if (!ema)
        return CO_E_NOMEM;
    ema->options = *options;
    ema->store = store;
    st = co_store_take_array(&ema->param, store, store->n);
    if (st == CO_OK)
        st = co_store_take_array(&ema->buffer, store, store->n_buffer);
    if (st != CO_OK) {
        co_ema_destroy(ema);
        return st;
    }
    store->vector->copy(store->queue, ema->param, store->param, store->n);
    store->vector->copy(store->queue, ema->buffer, store->buffer, store->n_buffer);
    *out = ema;
    return CO_OK;
}

void co_ema_destroy(co_ema *ema)
{
    if (!ema)
        return;
    co_store_give_array(ema->store, ema->buffer);
    co_store_give_array(ema->store, ema->param);
    co_free(ema);
}

void co_ema_begin(co_ema *ema, const co_store *store, uint64_t step)
{
    const double t = (double)ema->updates, early = (1 + t) / (10 + t);
    co_step_given *given = co_values_given(store);
    double keep = ema->options.decay;

    given->average = 0;
    if (step % (uint64_t)ema->options.every != 0)
        return;
    if (ema->options.warmup && early < keep)
        keep = early;
    given->average = 1 - keep;
    ema->updates++;
}

void co_ema_update(co_ema *ema, const co_store *store)
{
    const double *part = &store->values->given.average;

    store->vector->average(store->queue, ema->param, part, store->param, store->n);
    store->vector->average(store->queue, ema->buffer, part, store->buffer, store->n_buffer);
}

void co_ema_swap(co_ema *ema, co_store *store, bool param)
{
    if (param)
        store->vector->swap(store->queue, ema->param, store->param, store->n);
    store->vector->swap(store->queue, ema->buffer, store->buffer, store->n_buffer);
}
