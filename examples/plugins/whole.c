/*
 * whole.c - a strategy as a plugin: one all-reduce of the whole gradient, after backward. What
 * `sync` does without its buckets: the same weights, and no communication beside backward.
 */
#include <cohort/ext/store.h>
#include <cohort/ext/strategy.h>

static bool whole_replicas_in_sync(const co_strategy *strategy)
{
    (void)strategy;
    return true;
}

static co_status whole_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    const co_store_view store = co_store_look(strategy->store);

    (void)step;
    return co_comm_allreduce(strategy->comm, store.grad, store.grad, store.n, CO_F32, CO_SUM);
}

static const co_strategy_ops whole_ops = {
    .name = "whole",
    .summary = "one all-reduce of the whole gradient in each step",
    .replicas_in_sync = whole_replicas_in_sync,
    .before_update = whole_before_update,
};

CO_PLUGIN_ENTRY
{
    return CO_PLUGIN_REGISTER(CO_PLUGIN_STRATEGY, &whole_ops);
}
