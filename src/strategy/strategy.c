/*
 * strategy.c - creates a strategy from its config and calls its hooks.
 *
 * Does not know any strategy by name but the default, or what a hook does.
 */
#include "strategy/strategy.h"

#include "core/mem.h"
#include "device/device.h"
#include "strategy/reduce.h"
#include "tensor/store.h"

#define STRATEGY_TRY(strategy, hook, arguments)                                                    \
    CO_PLUGIN_TRY(&co_strategy_plugins, (strategy)->ops, hook, arguments)

/* Memory that ranks share is host memory. */
static co_status strategy_check_device(const co_strategy *strategy, const co_value *value)
{
    const unsigned shared = CO_STRATEGY_NEEDS_WINDOW | CO_STRATEGY_NEEDS_THREADS;
    const co_device *device = strategy->store->device;

    if (co_device_is_host(device) || !(strategy->ops->needs & shared))
        return CO_OK;
    return co_value_fail(value,
                         "the strategy '%s' has weights that all ranks share, which the device %s "
                         "has no memory for; use sync, local, one-shot or stale",
                         strategy->ops->name, co_device_name(device));
}

static co_status strategy_init(co_strategy *strategy)
{
    if (strategy->ops->init)
        STRATEGY_TRY(strategy, init, (strategy));
    return CO_OK;
}

static co_status strategy_setup(co_strategy *strategy, const co_value *map, const co_value *value,
                                co_config *config)
{
    const co_strategy_ops *ops = strategy->ops;
    const co_value none = co_value_absent(value);

    CO_TRY(strategy_check_device(strategy, value));
    strategy->self = co_calloc(1, ops->self_size ? ops->self_size : 1);
    if (!strategy->self)
        return CO_E_NOMEM;
    if (strategy->tree && !ops->shard_ready)
        return co_value_fail(value,
                             "the strategy '%s' has no order of summing that is the same for any "
                             "number of ranks; with `shards` use sync or threads, or let shards be "
                             "auto",
                             ops->name);
    CO_TRY(co_plugin_read(strategy->self, ops, &co_strategy_plugins, NULL, 0, map ? map : &none,
                          co_config_arena(config)));
    return co_value_place(strategy_init(strategy), value);
}

co_status co_strategy_create(co_strategy **out, const co_value *value, co_config *config,
                             co_comm *comm, co_store *store, const co_tree *tree)
{
    const void *ops;
    const co_value *map;
    co_strategy *strategy;
    co_status st;

    CO_TRY(co_plugin_choose(&ops, &map, &co_strategy_plugins, value, CO_STRATEGY_DEFAULT));
    strategy = co_calloc(1, sizeof(*strategy));
    if (!strategy)
        return CO_E_NOMEM;
    *strategy = (co_strategy){
        .ops = ops, .comm = comm, .store = store, .tree = tree, .update_end = store->n};
    st = strategy_setup(strategy, map, value, config);
    if (st != CO_OK) {
        co_strategy_destroy(strategy);
        return st;
    }
    *out = strategy;
    return CO_OK;
}

void co_strategy_destroy(co_strategy *strategy)
{
    if (!strategy)
        return;
    if (strategy->self && strategy->ops->fini)
        strategy->ops->fini(strategy);
    co_free(strategy->self);
    co_free(strategy);
}

co_status co_strategy_start(co_strategy *strategy)
{
    if (strategy->ops->start)
        STRATEGY_TRY(strategy, start, (strategy));
    return CO_OK;
}

bool co_strategy_replicas_in_sync(const co_strategy *strategy)
{
    return strategy->ops->replicas_in_sync && strategy->ops->replicas_in_sync(strategy);
}

bool co_strategy_synchronizes(const co_strategy *strategy, uint64_t step)
{
    return strategy->ops->synchronizes ? strategy->ops->synchronizes(strategy, step)
                                       : co_strategy_replicas_in_sync(strategy);
}

bool co_strategy_is_local(const co_strategy *strategy, uint64_t step)
{
    return strategy->ops->is_local && strategy->ops->is_local(strategy, step);
}

co_status co_strategy_grad_ready(co_strategy *strategy, size_t begin, size_t end)
{
    if (strategy->ops->grad_ready)
        STRATEGY_TRY(strategy, grad_ready, (strategy, begin, end));
    return CO_OK;
}

co_status co_strategy_shard_ready(co_strategy *strategy)
{
    STRATEGY_TRY(strategy, shard_ready, (strategy));
    return CO_OK;
}

co_status co_strategy_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    if (strategy->ops->before_update)
        STRATEGY_TRY(strategy, before_update, (strategy, step));
    return CO_OK;
}

co_status co_strategy_after_update(co_strategy *strategy, const co_strategy_step *step)
{
    if (strategy->ops->after_update)
        STRATEGY_TRY(strategy, after_update, (strategy, step));
    return CO_OK;
}

co_status co_strategy_finish(co_strategy *strategy)
{
    if (strategy->ops->finish)
        STRATEGY_TRY(strategy, finish, (strategy));
    return CO_OK;
}

co_status co_strategy_quiesce(co_strategy *strategy)
{
    if (strategy->ops->quiesce)
        STRATEGY_TRY(strategy, quiesce, (strategy));
    return CO_OK;
}

float *co_strategy_persistent(const co_strategy *strategy, size_t i)
{
    return strategy->ops->persistent ? strategy->ops->persistent(strategy, i) : NULL;
}

bool co_strategy_is_partial_sum(const co_strategy *strategy, size_t i)
{
    return strategy->ops->is_partial_sum && strategy->ops->is_partial_sum(strategy, i);
}

void co_strategy_rescale(co_strategy *strategy, double factor)
{
    if (strategy->ops->rescale)
        strategy->ops->rescale(strategy, factor);
}

co_strategy_merge co_strategy_merge_of(const co_strategy *strategy)
{
    return strategy->ops->merge ? strategy->ops->merge(strategy) : (co_strategy_merge){0, 1, 0};
}

uint64_t *co_strategy_counters(const co_strategy *strategy, size_t *n)
{
    *n = 0;
    return strategy->ops->counters ? strategy->ops->counters(strategy, n) : NULL;
}

co_status co_strategy_resume(co_strategy *strategy, uint64_t step)
{
    if (strategy->ops->resume)
        STRATEGY_TRY(strategy, resume, (strategy, step));
    return CO_OK;
}

co_strategy_counts co_strategy_report(const co_strategy *strategy)
{
    return strategy->ops->report ? strategy->ops->report(strategy)
                                 : (co_strategy_counts){NULL, NULL, 0};
}

bool co_strategy_part(size_t *begin, size_t *end, const co_strategy *strategy, int rank, size_t i)
{
    const co_comm *comm = strategy->divided;

    if (strategy->sliced) {
        if (i >= strategy->sliced->n_bucket)
            return false;
        co_reducer_slice(begin, end, strategy->sliced, i, rank);
        return true;
    }
    *begin = comm ? co_store_slice(strategy->store->n, rank, co_comm_size(comm))
                  : strategy->update_begin;
    *end = comm ? co_store_slice(strategy->store->n, rank + 1, co_comm_size(comm))
                : strategy->update_end;
    *end = *end > *begin ? *end : *begin;
    return i == 0;
}

bool co_strategy_own_part(size_t *begin, size_t *end, const co_strategy *strategy, size_t i)
{
    return co_strategy_part(begin, end, strategy,
                            strategy->divided ? co_comm_rank(strategy->divided) : 0, i);
}
