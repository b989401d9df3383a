/*
 * distributed_begin.c - the first part of a step: what the host decides before it, in the store's
 * values, for the next step or for several ahead.
 */
#include "core/clock.h"
#include "profile/profiler.h"
#include "step/distributed_internal.h"
#include "tensor/values.h"

/* Called from the strategy when the sum of a range is complete; not counted as its time. */
static co_status distributed_update_early(void *arg, size_t begin, size_t end)
{
    const uint64_t start_ns = co_clock_ns();
    co_distributed *d = arg;
    co_status st;

    co_profiler_enter(d->options.model->profiler, CO_PROFILE_UPDATE);
    st = distributed_update_range(d, begin, end);
    co_profiler_leave(d->options.model->profiler);
    d->sync_ns -= co_clock_ns() - start_ns;
    d->update_ns += co_clock_ns() - start_ns;
    return st;
}

/* Values that persist between steps; a device keeps them itself after the first step. */
static co_status distributed_set_values(co_distributed *d)
{
    co_store *store = d->options.model->store;

    if (d->current && store->ring)
        return CO_OK;
    d->current = true;
    return co_values_set(store, d->updates + 1, &d->scaler.state);
}

/* What the host gives step `number`, but for what its batch does. */
static void distributed_give(const co_distributed *d, uint64_t number)
{
    const co_progress progress = {.step = number,
                                  .steps_per_epoch = d->options.steps_per_epoch,
                                  .total_steps = d->options.total_steps};
    co_step_given *given = co_values_given(d->options.model->store);

    given->number = number;
    given->lr = co_optim_base_lr(d->optim) * co_schedule_factor(d->schedule, &progress);
    given->clip_norm = d->options.clip_norm;
    given->clip_value = d->options.clip_value;
}

/* The step has its values. A range may be updated as soon as its sum is complete, unless the update
   depends on the whole gradient (norm, overflow). */
static void distributed_enter_step(co_distributed *d)
{
    const bool early =
        !co_scaler_is_on(&d->scaler) && d->options.clip_norm <= 0 && !d->strategy->whole_tensors;

    d->begun = true;
    d->strategy->update = early ? distributed_update_early : NULL;
    d->strategy->updater = d;
    d->strategy->updated = false;
}

co_status distributed_begin_step(co_distributed *d)
{
    if (d->begun)
        return CO_OK;
    CO_TRY(distributed_follow_freezes(d));
    distributed_give(d, d->step.step);
    CO_TRY(distributed_set_values(d));
    CO_TRY(co_values_send(d->options.model->store));
    distributed_enter_step(d);
    return CO_OK;
}

co_status co_distributed_begin(co_distributed *d, const co_batch *batch)
{
    co_model_give_values(d->options.model, batch);
    return distributed_begin_step(d);
}

void co_distributed_foresee(const co_distributed *d, const co_batch *batch, uint64_t ahead,
                            int place)
{
    co_model_give_values(d->options.model, batch);
    distributed_give(d, d->step.step + ahead);
    co_values_keep(d->options.model->store, place);
}

co_status co_distributed_use(co_distributed *d, int place)
{
    CO_TRY(co_values_use(d->options.model->store, place));
    distributed_enter_step(d);
    return CO_OK;
}
