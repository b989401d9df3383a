/*
 * freeze.c - frozen parameters: they are not updated, and their gradients are zero, so that they do
 * not contribute to norms, overflow checks or sums over ranks.
 *
 * Backward computes no gradients below the first trainable layer. What it leaves in frozen ranges
 * (old values, or those of layers it had to pass) is cleared here.
 */
#include "core/mem.h"
#include "step/distributed_internal.h"

static co_status freeze_check(const co_distributed *d, size_t n)
{
    if (n > 0 && d->n_frozen == n)
        return co_fail(CO_E_USAGE, "freeze: no parameter is left to train");
    if (d->n_frozen > 0 && d->strategy && !co_strategy_replicas_in_sync(d->strategy))
        return co_fail(
            CO_E_USAGE,
            "freeze: with the strategy %s ranks average their weights, which would round "
            "frozen ones; take sync",
            d->strategy->ops->name);
    return CO_OK;
}

co_status distributed_set_segments(co_distributed *d)
{
    const co_model *model = d->options.model;
    co_segment *segment = NULL;
    size_t n = 0;
    co_status st;

    CO_TRY(co_model_segments(&segment, &n, model));
    st = co_optim_set_segments(d->optim, segment, n);
    co_free(d->frozen);
    d->frozen = segment;
    d->n_frozen = 0;
    for (size_t i = 0; i < n; i++)
        if (segment[i].frozen)
            segment[d->n_frozen++] = segment[i];
    d->freezes = model->freezes;
    return st == CO_OK ? freeze_check(d, n) : st;
}

co_status distributed_follow_freezes(co_distributed *d)
{
    return d->freezes == d->options.model->freezes ? CO_OK : distributed_set_segments(d);
}

void distributed_drop_frozen(const co_distributed *d, size_t begin, size_t end)
{
    const co_store *store = d->options.model->store;

    for (size_t i = 0; i < d->n_frozen; i++) {
        const co_segment *s = &d->frozen[i];
        const size_t from = s->begin > begin ? s->begin : begin;
        const size_t to = s->begin + s->n < end ? s->begin + s->n : end;

        if (from < to)
            store->vector->zero(store->queue, store->grad + from, to - from);
    }
}
