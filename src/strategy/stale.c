/*
 * stale.c - applies the gradients of step t at step t + k, so that their all-reduce overlaps with k
 * steps of computing:
 *   w(t+1) = w(t) - lr sum over ranks of m_i/n g_i(w(t-k))
 * (delayed SGD: Langford, Smola and Zinkevich, "Slow Learners are Fast", NIPS 2009.) All ranks
 * apply the same sums, so their weights are equal.
 *
 * A ring of k buffers holds the pending sums: at step t this rank's gradient replaces the sum of
 * step t - k, which goes to the optimizer. The first k steps update nothing, and the last k sums
 * are never applied: T steps make T - k updates, and a run of k or fewer is refused. With k = 0 the
 * calls are those of `sync`.
 *
 * `racy` reproduces what happens in PyTorch's tutorial if its all_reduce is made asynchronous and
 * the handle is dropped: the optimizer reads gradients that may be summed partly or not at all. The
 * race is only between stale_before_update and stale_after_update: the sum is complete before
 * backward writes the buffer again. Ranks drift apart; at the end rank 0's weights are used.
 */
#include "core/mem.h"
#include "strategy/reduce.h"
#include "strategy/strategy.h"
#include "strategy/weights.h"

typedef struct stale_slot {
    co_reducer reducer;
    float *sum; /* owned; NULL: the store's gradient is reduced in place */
} stale_slot;

typedef struct stale {
    int64_t k;
    bool racy;
    double bucket_mib;
    size_t n_slot;
    stale_slot *slot; /* owned; ring: step t uses slot t mod k */
} stale;

static const co_key stale_keys[] = {
    {.name = "k",
     .type = CO_KEY_INT,
     .offset = offsetof(stale, k),
     .fallback = "1",
     .min = 0,
     .max = 64,
     .help = "steps from a gradient to its use; each takes memory for one more gradient"},
    {.name = "racy",
     .type = CO_KEY_BOOL,
     .offset = offsetof(stale, racy),
     .fallback = "false",
     .help =
         "use a sum before it is complete, without delay: a race, for study; ranks drift apart"},
    CO_REDUCER_KEY(stale, bucket_mib),
    CO_KEYS_END,
};

static bool stale_is_delayed(const stale *self)
{
    return self->k > 0 && !self->racy;
}

static co_status stale_init_slot(stale_slot *slot, const co_strategy *strategy)
{
    const stale *self = strategy->self;
    const co_store *store = strategy->store;

    if (stale_is_delayed(self))
        CO_TRY(co_store_take_array(&slot->sum, store, store->n));
    return co_reducer_init(&slot->reducer, strategy, slot->sum ? slot->sum : store->grad,
                           self->bucket_mib, CO_SUM);
}

static co_status stale_init(co_strategy *strategy)
{
    stale *self = strategy->self;
    const size_t n_slot = stale_is_delayed(self) ? (size_t)self->k : 1;

    strategy->own_weights = strategy->own_state = strategy->delayed = self->racy;
    if (self->racy && self->k > 1)
        return co_fail(CO_E_USAGE, "strategy stale: racy: true has no delay; leave k out");
    self->slot = co_calloc(n_slot, sizeof(*self->slot));
    if (!self->slot)
        return CO_E_NOMEM;
    self->n_slot = n_slot;
    strategy->delay = stale_is_delayed(self) ? n_slot : 0;
    for (size_t i = 0; i < n_slot; i++)
        CO_TRY(stale_init_slot(&self->slot[i], strategy));
    return CO_OK;
}

static bool stale_replicas_in_sync(const co_strategy *strategy)
{
    return !((const stale *)strategy->self)->racy;
}

/* Even with a race ranks meet in each step: it ends when the sum is complete. */
static bool stale_synchronizes(const co_strategy *strategy, uint64_t step)
{
    (void)strategy;
    (void)step;
    return true;
}

static co_status stale_start(co_strategy *strategy)
{
    return co_weights_broadcast(strategy);
}

static co_status stale_grad_ready(co_strategy *strategy, size_t begin, size_t end)
{
    stale *self = strategy->self;

    if (self->k == 0 && !self->racy)
        return co_reducer_ready(&self->slot[0].reducer, begin, end);
    return co_comm_progress(strategy->comm);
}

/* Exchange this step's gradient with the sum of k steps ago. */
static co_status stale_exchange(co_strategy *strategy, const co_strategy_step *step)
{
    stale *self = strategy->self;
    const co_store *store = strategy->store;
    stale_slot *slot = &self->slot[step->step % self->n_slot];
    const bool filled = step->step >= self->n_slot;

    CO_TRY(co_reducer_wait(&slot->reducer, NULL, NULL));
    store->vector->swap(store->queue, slot->sum, store->grad, store->n);
    strategy->update_end = filled ? store->n : 0;
    return co_reducer_post(&slot->reducer);
}

static co_status stale_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    stale *self = strategy->self;
    co_reducer *reducer = &self->slot[0].reducer;

    if (stale_is_delayed(self))
        return stale_exchange(strategy, step);
    CO_TRY(co_reducer_post(reducer));
    return self->racy ? CO_OK : co_reducer_wait(reducer, NULL, NULL);
}

static co_status stale_after_update(co_strategy *strategy, const co_strategy_step *step)
{
    stale *self = strategy->self;

    (void)step;
    return self->racy ? co_reducer_wait(&self->slot[0].reducer, NULL, NULL) : CO_OK;
}

/* Complete the pending sums, which remain in their slots. */
static co_status stale_quiesce(co_strategy *strategy)
{
    stale *self = strategy->self;

    for (size_t i = 0; i < self->n_slot; i++)
        CO_TRY(co_reducer_wait(&self->slot[i].reducer, NULL, NULL));
    return CO_OK;
}

static float *stale_persistent(const co_strategy *strategy, size_t i)
{
    const stale *self = strategy->self;

    return i < self->n_slot ? self->slot[i].sum : NULL;
}

static co_status stale_finish(co_strategy *strategy)
{
    const stale *self = strategy->self;

    CO_TRY(stale_quiesce(strategy));
    return self->racy ? co_weights_broadcast(strategy) : CO_OK;
}

/* Rank 0's weights, unchanged. */
static co_strategy_merge stale_merge(const co_strategy *strategy)
{
    const stale *self = strategy->self;

    return (co_strategy_merge){self->racy && co_comm_rank(strategy->comm) == 0, 1, 0};
}

static void stale_fini(co_strategy *strategy)
{
    stale *self = strategy->self;

    for (size_t i = 0; i < self->n_slot; i++) {
        co_reducer_fini(&self->slot[i].reducer);
        co_store_give_array(strategy->store, self->slot[i].sum);
    }
    co_free(self->slot);
}

const co_strategy_ops co_strategy_stale = {
    .name = "stale",
    .summary = "use the summed gradients k steps late; WARNING: racy: true does not wait for them",
    .keys = stale_keys,
    .self_size = sizeof(stale),
    .init = stale_init,
    .start = stale_start,
    .replicas_in_sync = stale_replicas_in_sync,
    .synchronizes = stale_synchronizes,
    .grad_ready = stale_grad_ready,
    .before_update = stale_before_update,
    .after_update = stale_after_update,
    .finish = stale_finish,
    .merge = stale_merge,
    .quiesce = stale_quiesce,
    .persistent = stale_persistent,
    .fini = stale_fini,
};
