/*
 * sync.c - synchronous SGD: every step, the gradients of all ranks are added up before any weight
 * moves, so all ranks hold the same weights.
 *
 * Gradients are already divided by the size of the global batch, so their plain sum is the
 * gradient of the whole batch however unevenly its samples lie: sum of m_k/n g_k. The sum is
 * taken bucket by bucket, in the background of the backward pass.
 */
#include "strategy/reduce.h"
#include "strategy/strategy.h"
#include "strategy/weights.h"

typedef struct sync_state {
    double bucket_mib;
    int reduction;
    co_reducer reducer;
} sync_state;

enum { SYNC_SUM, SYNC_MEAN };
static const char *const sync_reductions[] = {"sum", "mean", NULL};

static const co_key sync_keys[] = {
    {.name = "reduction",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(sync_state, reduction),
     .fallback = "sum",
     .choices = sync_reductions,
     .help = "sum: the gradient of the whole batch; mean: that divided by the ranks once more"},
    CO_REDUCER_KEY(sync_state, bucket_mib),
    CO_KEYS_END,
};

static co_status sync_init(co_strategy *strategy)
{
    sync_state *self = strategy->self;

    if (strategy->tree && self->reduction == SYNC_MEAN)
        return co_fail(CO_E_USAGE,
                       "reduction: mean divides by the number of ranks, of which shards make the "
                       "result independent; use `reduction: sum`, or let shards be auto");
    return co_reducer_init(&self->reducer, strategy, strategy->store->grad, self->bucket_mib,
                           self->reduction == SYNC_MEAN ? CO_AVG : CO_SUM);
}

static bool sync_is_common(const co_strategy *strategy)
{
    (void)strategy;
    return true;
}

static co_status sync_start(co_strategy *strategy)
{
    return co_weights_broadcast(strategy);
}

static co_status sync_grad_ready(co_strategy *strategy, size_t begin, size_t end)
{
    sync_state *self = strategy->self;

    return co_reducer_ready(&self->reducer, begin, end);
}

static co_status sync_shard_ready(co_strategy *strategy)
{
    sync_state *self = strategy->self;

    co_reducer_next_shard(&self->reducer);
    return co_comm_progress(strategy->comm);
}

static co_status sync_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    sync_state *self = strategy->self;

    (void)step;
    CO_TRY(co_reducer_post(&self->reducer));
    return co_reducer_wait(&self->reducer);
}

static void sync_fini(co_strategy *strategy)
{
    sync_state *self = strategy->self;

    co_reducer_fini(&self->reducer);
}

const co_strategy_ops co_strategy_sync = {
    .name = "sync",
    .summary = "add up the gradients of all ranks at every step (synchronous SGD)",
    .keys = sync_keys,
    .self_size = sizeof(sync_state),
    .init = sync_init,
    .start = sync_start,
    .is_common = sync_is_common,
    .grad_ready = sync_grad_ready,
    .shard_ready = sync_shard_ready,
    .before_update = sync_before_update,
    .fini = sync_fini,
};
