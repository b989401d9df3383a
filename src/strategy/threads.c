/*
 * threads.c - ranks are threads of one process and share one set of weights.
 *
 * Similar to DataParallel, without copying the network in every step: gradients are summed as in
 * `sync`, with the same bits; then each rank updates its part of the weights (whole cache lines)
 * and waits for the others. This divides the optimizer's work by the number of ranks, and the
 * memory for its state that is touched. Nobody writes a weight before the sum is complete, which is
 * after all ranks have read the weights.
 *
 * Works on any memory that ranks share; `needs` is what makes `cohort train` use threads.
 */
#include "strategy/parts.h"
#include "strategy/reduce.h"
#include "strategy/shared.h"
#include "strategy/strategy.h"

typedef struct threads_state {
    double bucket_mib;
    co_reducer reducer;
    float *weights; /* owned; shared by all ranks */
} threads_state;

static const co_key threads_keys[] = {
    CO_REDUCER_KEY(threads_state, bucket_mib),
    CO_KEYS_END,
};

static co_status threads_init(co_strategy *strategy)
{
    threads_state *self = strategy->self;

    strategy->divides = true;
    co_parts_divide(strategy, strategy->comm);
    return co_reducer_init(&self->reducer, strategy, strategy->store->grad, self->bucket_mib,
                           CO_SUM);
}

static bool threads_replicas_in_sync(const co_strategy *strategy)
{
    (void)strategy;
    return true;
}

static co_status threads_start(co_strategy *strategy)
{
    threads_state *self = strategy->self;

    return co_shared_open(&self->weights, strategy, strategy->comm);
}

static co_status threads_grad_ready(co_strategy *strategy, size_t begin, size_t end)
{
    threads_state *self = strategy->self;

    return co_reducer_ready(&self->reducer, begin, end);
}

static co_status threads_shard_ready(co_strategy *strategy)
{
    threads_state *self = strategy->self;

    co_reducer_next_shard(&self->reducer);
    return co_comm_progress(strategy->comm);
}

static co_status threads_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    threads_state *self = strategy->self;

    (void)step;
    CO_TRY(co_reducer_post(&self->reducer));
    return co_reducer_wait(&self->reducer, NULL, NULL);
}

static co_status threads_after_update(co_strategy *strategy, const co_strategy_step *step)
{
    (void)step;
    return co_comm_barrier(strategy->comm);
}

static void threads_fini(co_strategy *strategy)
{
    threads_state *self = strategy->self;

    co_reducer_fini(&self->reducer);
    co_shared_close(strategy, strategy->comm, self->weights);
}

const co_strategy_ops co_strategy_threads = {
    .name = "threads",
    .summary = "as sync, with ranks as threads of one process that share the weights",
    .keys = threads_keys,
    .self_size = sizeof(threads_state),
    .needs = CO_STRATEGY_NEEDS_WINDOW | CO_STRATEGY_NEEDS_THREADS,
    .init = threads_init,
    .start = threads_start,
    .replicas_in_sync = threads_replicas_in_sync,
    .grad_ready = threads_grad_ready,
    .shard_ready = threads_shard_ready,
    .before_update = threads_before_update,
    .after_update = threads_after_update,
    .fini = threads_fini,
};
