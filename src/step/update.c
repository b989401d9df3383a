/*
 * update.c - decides about the update of a step and applies it: norm, overflow and loss scale, in
 * the store's values. On a device all of it is queued. Does not know how or when the gradient was
 * summed.
 */
#include <math.h>

#include "comm/queued.h"
#include "core/rng.h"
#include "device/device.h"
#include "step/distributed_internal.h"
#include "tensor/values.h"

/* Round weights to half precision if there are no fp32 ones. Stochastic rounding is the same on all
   ranks, except while ranks have their own weights; then it is independent, so that errors cancel
   in an average. */
static void update_round(const co_distributed *d, size_t begin, size_t end)
{
    const co_precision *p = &d->scaler.precision;
    const co_store *store = d->options.model->store;
    const bool local = co_strategy_is_local(d->strategy, d->step.step);
    const co_rng rng = {.seed = d->options.model->seed,
                        .stream = CO_RNG_ROUND,
                        .item = local ? (uint32_t)co_comm_rank(d->options.comm) : 0};

    if (p->rounding == CO_ROUNDING_STOCHASTIC)
        store->vector->round_stochastic(store->queue, store->param + begin, end - begin,
                                        p->plan.low, &rng, &store->values->given.number, begin);
    else if (p->rounding == CO_ROUNDING_NEAREST)
        store->vector->round_nearest(store->queue, store->param + begin, end - begin, p->plan.low);
}

co_status distributed_update_range(co_distributed *d, size_t begin, size_t end)
{
    co_optim_set_threads(d->optim, d->options.model->threads);
    CO_TRY(co_optim_update(d->optim, d->options.model->store, begin, end));
    update_round(d, begin, end);
    return CO_OK;
}

/* max_abs of the gradients that this rank would update; a NaN counts as larger than all numbers.
   Parts that are slices are the host's. */
static void update_find_most(const co_strategy *s, const co_store *store)
{
    float *all = &store->values->max_abs, most;
    size_t begin, end;

    if (!s->sliced) {
        (void)co_strategy_own_part(&begin, &end, s, 0);
        store->vector->max_abs(store->queue, all, store->grad + begin, end - begin);
        return;
    }
    *all = 0;
    for (size_t i = 0; co_strategy_own_part(&begin, &end, s, i); i++) {
        store->vector->max_abs(store->queue, &most, store->grad + begin, end - begin);
        if (isnan(most) || most > *all)
            *all = most;
    }
}

/* The squares of the blocks of this rank's parts; 0 of others. Their sum in order is that of
   sum_squares over all. */
static void update_add_blocks(const co_distributed *d)
{
    const co_store *store = d->options.model->store;
    size_t begin, end;

    for (size_t i = 0; co_strategy_own_part(&begin, &end, d->strategy, i); i++)
        store->vector->block_squares(store->queue, d->block_squares + begin / CO_VECTOR_SQUARES,
                                     store->grad + begin, end - begin, &store->values->rule);
}

/* co_clip_norm where each rank has its parts of the gradient alone: the same bits. */
static co_status update_clip_parts(co_distributed *d)
{
    const co_store *store = d->options.model->store;
    const size_t n = (store->n + CO_VECTOR_SQUARES - 1) / CO_VECTOR_SQUARES;
    co_step_values *values = store->values;
    const co_coll_args sum = {.coll = CO_COLL_ALLREDUCE,
                              .in = d->block_squares,
                              .out = d->block_squares,
                              .count = n,
                              .dtype = CO_F64,
                              .op = CO_SUM,
                              .queue = store->queue};

    CO_TRY(co_queue_fill(store->queue, d->block_squares, 0, n * sizeof(*d->block_squares)));
    update_add_blocks(d);
    CO_TRY(co_comm_enqueue_run(d->options.comm, &sum));
    store->vector->sum_blocks(store->queue, &values->sum_squares, d->block_squares, n);
    if (co_scaler_is_on(&d->scaler))
        update_find_most(d->strategy, store);
    store->vector->step(store->queue, values, CO_STEP_CLIP, NULL);
    return CO_OK;
}

/* Set found_inf if the gradients that this rank would update are not finite. If replicas are in
   sync, ranks decide together: an overflow on one skips the step on all. Clipping by norm has seen
   them already. */
static co_status update_find_overflow(const co_distributed *d)
{
    const co_store *store = d->options.model->store;
    const co_strategy *s = d->strategy;
    co_step_values *values = store->values;
    const co_coll_args args = {.coll = CO_COLL_ALLREDUCE,
                               .in = &values->found_inf,
                               .out = &values->found_inf,
                               .count = 1,
                               .dtype = CO_I32,
                               .op = CO_MAX,
                               .queue = store->queue};

    if (d->options.clip_norm <= 0)
        update_find_most(s, store);
    store->vector->step(store->queue, values, CO_STEP_FOUND, NULL);
    if (!co_strategy_replicas_in_sync(s) || co_comm_size(d->options.comm) == 1)
        return CO_OK;
    return co_comm_enqueue_run(d->options.comm, &args);
}

co_status distributed_judge(co_distributed *d)
{
    if (d->block_squares)
        CO_TRY(update_clip_parts(d));
    else if (d->options.clip_norm > 0)
        co_clip_norm(d->options.model->store, co_scaler_is_on(&d->scaler));
    return co_scaler_is_on(&d->scaler) ? update_find_overflow(d) : CO_OK;
}

/* On the host only; a device decides by itself. */
static bool update_skips(const co_store *store)
{
    return !store->ring && store->values->found_inf;
}

/* Whether the norm is wanted, and this rank can compute it; with clipping it is there. */
static bool update_wants_norm(const co_distributed *d)
{
    return d->wants_norm && d->options.clip_norm <= 0 && !d->strategy->divided &&
           d->strategy->update_begin == 0 && d->strategy->update_end == d->options.model->store->n;
}

/* Without clipping nobody else needs it. The gradient is as the update has read it. */
static void update_norm(co_distributed *d)
{
    const co_store *store = d->options.model->store;
    co_step_values *values = store->values;

    if (store->ring)
        return;
    if (update_wants_norm(d)) {
        store->vector->sum_squares(store->queue, &values->sum_squares, NULL, store->grad, store->n,
                                   &values->rule);
        d->norm = sqrt(values->sum_squares);
    }
    d->wants_norm = false;
}

co_status co_distributed_queue_norm(co_distributed *d)
{
    const co_store *store = d->options.model->store;
    co_step_values *values = store->values;
    const uint64_t number = co_values_given(store)->number;
    void *room = NULL;

    if (!store->ring)
        return CO_OK;
    if (update_wants_norm(d)) {
        if (!d->norm_room)
            CO_TRY(co_device_alloc(&room, store->device, CO_VECTOR_PARTS * sizeof(*d->norm_room),
                                   CO_MEMORY_DEVICE));
        d->norm_room = d->norm_room ? d->norm_room : room;
        store->vector->measure_squares(store->queue, &values->sum_squares, d->norm_room,
                                       store->grad, store->n, &values->rule);
        d->norm_queued[number % DISTRIBUTED_IN_FLIGHT] = number + 1;
    }
    d->wants_norm = false;
    return CO_OK;
}

void co_distributed_want_norm(co_distributed *d)
{
    d->wants_norm = true;
}

double co_distributed_norm(const co_distributed *d)
{
    return d->norm;
}

co_status distributed_update(co_distributed *d)
{
    const bool any = d->strategy->update_begin < d->strategy->update_end;
    const co_store *store = d->options.model->store;
    size_t begin, end;

    if (!store->ring)
        d->norm = (double)NAN;
    update_norm(d);
    if (any) {
        for (size_t i = 0; !d->strategy->updated && !update_skips(store) &&
                           co_strategy_own_part(&begin, &end, d->strategy, i);
             i++)
            CO_TRY(distributed_update_range(d, begin, end));
        store->vector->step(store->queue, store->values, CO_STEP_COUNT, NULL);
    }
    if (co_scaler_is_on(&d->scaler))
        store->vector->step(store->queue, store->values, CO_STEP_END, &d->scaler.rules);
    return store->ring ? CO_OK : co_distributed_take(d, store->values);
}

/* What was queued after the step used the loss scale of the next one. */
static double update_queued_norm(const co_distributed *d, const co_step_values *values)
{
    const uint64_t number = values->given.number;
    const double moved =
        co_scaler_is_on(&d->scaler) ? values->loss_scale.scale / d->scaler.state.scale : 1;

    return d->norm_queued[number % DISTRIBUTED_IN_FLIGHT] == number + 1
               ? sqrt(values->sum_squares) * moved
               : (double)NAN;
}

co_status co_distributed_take(co_distributed *d, const co_step_values *values)
{
    const double before = d->scaler.state.scale;

    if (d->options.clip_norm > 0)
        d->norm = values->norm;
    else if (d->options.model->store->ring)
        d->norm = update_queued_norm(d, values);
    d->updates = values->update - 1;
    d->lr = values->given.lr;
    if (!co_scaler_is_on(&d->scaler))
        return CO_OK;
    CO_TRY(co_scaler_take(&d->scaler, values));
    if (d->scaler.state.scale != before)
        co_strategy_rescale(d->strategy, d->scaler.state.scale / before);
    return CO_OK;
}
