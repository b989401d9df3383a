/*
 * freeze.c - frozen parameters: they are not updated, and their gradients are zero, so that they do
 * not contribute to norms, overflow checks or sums over ranks. The updates that they miss are
 * counted: an optimizer that goes by its number of updates begins with each tensor when that is
 * trained.
 *
 * Backward computes no gradients below the first trainable layer. What it leaves in frozen ranges
 * (old values, or those of layers it had to pass) is cleared here.
 */
#include "core/mem.h"
#include "step/distributed_internal.h"
#include "tensor/values.h"

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

static uint64_t freeze_missed(const co_distributed *d, size_t i, uint64_t updates)
{
    const co_segment *segment = &d->segment[i];

    return segment->missed + (segment->frozen ? updates - d->counted : 0);
}

co_status distributed_set_segments(co_distributed *d, uint64_t updates)
{
    const co_model *model = d->options.model;
    co_segment *segment = NULL;
    size_t n = 0;
    co_status st;

    CO_TRY(co_model_segments(&segment, &n, model));
    for (size_t i = 0; i < d->n_segment; i++)
        segment[i].missed = freeze_missed(d, i, updates);
    st = co_optim_set_segments(d->optim, segment, n);
    co_free(d->segment);
    d->segment = segment;
    d->n_segment = n;
    d->n_frozen = 0;
    for (size_t i = 0; i < n; i++)
        d->n_frozen += segment[i].frozen;
    d->counted = updates;
    d->freezes = model->freezes;
    return st == CO_OK ? freeze_check(d, n) : st;
}

co_status distributed_follow_freezes(co_distributed *d)
{
    const co_store *store = d->options.model->store;
    co_step_values values;

    if (d->freezes == d->options.model->freezes)
        return CO_OK;
    if (!store->ring || !d->current)
        return distributed_set_segments(d, d->updates);
    CO_TRY(co_values_read(&values, store)); /* after steps whose results nobody has taken yet */
    return distributed_set_segments(d, values.update - 1);
}

void co_distributed_missed(uint64_t *missed, const co_distributed *d)
{
    for (size_t i = 0; i < d->n_segment; i++)
        missed[d->segment[i].param] = freeze_missed(d, i, d->updates);
}

co_status distributed_resume_missed(co_distributed *d, const uint64_t *missed)
{
    for (size_t i = 0; i < d->n_segment; i++)
        d->segment[i].missed = missed[d->segment[i].param];
    d->counted = d->updates;
    return distributed_set_segments(d, d->updates);
}

void distributed_drop_frozen(const co_distributed *d, size_t begin, size_t end)
{
    const co_store *store = d->options.model->store;

    for (size_t i = 0; d->n_frozen > 0 && i < d->n_segment; i++) {
        const co_segment *s = &d->segment[i];
        const size_t from = s->begin > begin ? s->begin : begin;
        const size_t to = s->begin + s->n < end ? s->begin + s->n : end;

        if (s->frozen && from < to)
            store->vector->zero(store->queue, store->grad + from, to - from);
    }
}
