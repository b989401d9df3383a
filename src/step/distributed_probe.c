/*
 * distributed_probe.c - properties of a distributed optimizer that are needed before there is a
 * model: its persistent arrays, and the ranks that share weights.
 */
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/plural.h"
#include "step/distributed_internal.h"

/* A distributed optimizer over a store without layers; one rank, not started. */
typedef struct distributed_probe {
    co_comm *self;
    co_store *store;
    co_tree *tree; /* NULL: no shards */
    co_distributed d;
} distributed_probe;

static co_status distributed_probe_open(distributed_probe *probe,
                                        const co_distributed_values *values)
{
    co_distributed *d = &probe->d;

    memset(probe, 0, sizeof(*probe));
    CO_TRY(co_comm_create_self(&probe->self));
    CO_TRY(co_store_create(&probe->store, CO_STORE_ALIGN, 0));
    CO_TRY(co_optim_create(&d->optim, values->optimizer, values->config, probe->store));
    CO_TRY(co_schedule_create(&d->schedule, values->schedule, values->config));
    if (values->shards)
        CO_TRY(co_tree_create(&probe->tree, values->shards, 1));
    return co_strategy_create(&d->strategy, values->strategy, values->config, probe->self,
                              probe->store, probe->tree);
}

static void distributed_probe_close(distributed_probe *probe)
{
    co_strategy_destroy(probe->d.strategy);
    co_tree_destroy(probe->tree);
    co_schedule_destroy(probe->d.schedule);
    co_optim_destroy(probe->d.optim);
    co_store_destroy(probe->store);
    co_comm_destroy(probe->self);
}

bool distributed_keeps_gradients(const co_strategy *strategy)
{
    return strategy->delayed || (co_strategy_replicas_in_sync(strategy) &&
                                 !strategy->ops->rescale && co_strategy_persistent(strategy, 0));
}

co_status distributed_check_scale(const co_strategy *strategy, const co_scaler *scaler)
{
    if (!co_scaler_is_on(scaler) || !distributed_keeps_gradients(strategy))
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "precision: with the strategy %s, as it is set, gradients outlive their step, "
                   "and a loss scale holds for one step; say `loss_scale: 1`, or take sync",
                   strategy->ops->name);
}

co_status distributed_check_schedule(const co_distributed *d)
{
    const co_progress lengths = {.steps_per_epoch = d->options.steps_per_epoch,
                                 .total_steps = d->options.total_steps};
    const uint64_t warmup = co_schedule_warmup(d->schedule, &lengths);

    CO_TRY(co_schedule_check(d->schedule, &lengths));
    if (lengths.total_steps > 0 && warmup > lengths.total_steps &&
        co_comm_rank(d->options.comm) == 0)
        co_log(CO_LOG_WARN,
               "schedule.warmup takes %llu updates, and the run has %llu: the rate never reaches "
               "optimizer.lr",
               (unsigned long long)warmup, (unsigned long long)lengths.total_steps);
    return CO_OK;
}

co_status distributed_check_delay(const co_distributed *d)
{
    const uint64_t delay = d->strategy->delay, steps = d->options.total_steps;

    if (steps == 0 || delay < steps)
        return CO_OK;
    return co_fail(
        CO_E_USAGE,
        "strategy %s: a gradient is used %llu step%s after its own, and the run has %llu "
        "in all, so that nothing would be learned; take more steps or a smaller delay",
        d->strategy->ops->name, (unsigned long long)delay, co_plural(delay),
        (unsigned long long)steps);
}

co_status co_distributed_check(unsigned *needs, bool *common, bool *in_step,
                               const co_distributed_values *values)
{
    distributed_probe probe;
    co_status st = distributed_probe_open(&probe, values);

    if (st == CO_OK && probe.d.strategy->divides && values->ranks > 1)
        st = co_value_place(co_optim_check_parts(probe.d.optim), values->strategy);
    if (st == CO_OK && values->precision) {
        co_scaler_init(&probe.d.scaler, values->precision);
        st = co_value_place(distributed_check_scale(probe.d.strategy, &probe.d.scaler),
                            values->strategy);
    }
    if (st == CO_OK) {
        *needs = probe.d.strategy->ops->needs;
        *common = co_strategy_replicas_in_sync(probe.d.strategy);
        *in_step = *common && *needs == 0 && co_distributed_is_settled(&probe.d);
    }
    distributed_probe_close(&probe);
    return st;
}

/* Array i; optimizer and strategy were created for `store`. */
static bool distributed_array(co_distributed_array *out, const co_distributed *d,
                              const co_store *store, int i)
{
    const int states = co_optim_state_count(d->optim);

    if (i < states) {
        snprintf(out->name, sizeof(out->name), "%s", co_optim_state_name(d->optim, i));
        out->data = co_optim_state(d->optim, store, i);
        out->divided = d->strategy->divided != NULL;
        out->own = d->strategy->own_state;
        out->share = out->carry = false;
        return true;
    }
    out->carry = true;
    out->divided = false;
    out->data = co_strategy_persistent(d->strategy, (size_t)(i - states));
    out->own = out->share = co_strategy_is_partial_sum(d->strategy, (size_t)(i - states));
    snprintf(out->name, sizeof(out->name), "%s.%d", d->strategy->ops->name, i - states);
    return out->data != NULL;
}

bool co_distributed_array_at(co_distributed_array *out, const co_distributed *d, int i)
{
    return distributed_array(out, d, d->options.model->store, i);
}

bool co_distributed_is_divided(const co_distributed *d, int i)
{
    co_distributed_array array;

    return i >= 0 && co_distributed_array_at(&array, d, i) && array.divided;
}

bool co_distributed_part(size_t *begin, size_t *end, const co_distributed *d, int rank, size_t i)
{
    return co_strategy_part(begin, end, d->strategy, rank, i);
}

bool co_distributed_sums_slices(const co_distributed *d)
{
    return d->strategy->sliced != NULL || d->strategy->own_sums;
}

co_comm *co_distributed_sharers(const co_distributed *d)
{
    const co_store *store = d->options.model->store;

    return store->param != store->own_param ? co_comm_local(d->options.comm) : NULL;
}

co_comm *co_distributed_dividers(const co_distributed *d)
{
    return d->strategy->divided;
}

co_status co_distributed_forget_others(const co_distributed *d)
{
    const co_strategy *s = d->strategy;
    size_t begin, end, last = 0;

    if (!s->divided)
        return CO_OK;
    if (!s->sliced)
        return co_store_forget_state(d->options.model->store, s->update_begin, s->update_end);
    for (size_t i = 0; co_strategy_own_part(&begin, &end, s, i); i++, last = end)
        co_store_forget_range(d->options.model->store, last, begin);
    co_store_forget_range(d->options.model->store, last, d->options.model->store->n);
    return CO_OK;
}

co_status co_distributed_list(co_distributed_array *out, int *n, bool *own_weights, int max,
                              const co_distributed_values *values)
{
    distributed_probe probe;
    co_status st = distributed_probe_open(&probe, values);

    *n = 0;
    if (st == CO_OK) {
        *own_weights = probe.d.strategy->own_weights;
        while (*n < max && distributed_array(&out[*n], &probe.d, probe.store, *n))
            out[(*n)++].data = NULL;
    }
    distributed_probe_close(&probe);
    return st;
}
