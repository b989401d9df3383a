/*
 * ssp.c - asynchronous SGD with a bound on how far ranks drift apart (stale synchronous parallel:
 * Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server",
 * NIPS 2013). The parameter server is a window of memory that all ranks share.
 *
 * A rank reads the weights, makes its step on the copy, and adds the change to the shared weights.
 * It reads for step t only when every rank has added its step t - 1 - bound, so it is at most
 * `bound` steps ahead of the slowest. It may see newer steps of others, as in the paper. But a step
 * t is added only when every rank has read for step t - bound, so that with bound 0 all ranks read
 * the same weights, and the run equals `sync` up to rounding, as the order of addition varies. The
 * staleness of reads relative to the slowest rank is counted and reported.
 *
 * The optimizer gets `ranks` times the rank's part of the gradient of the global batch, and a step
 * counts 1 / ranks. With plain SGD, momentum and weight decay the sum over ranks is the step of
 * `sync`, however samples are distributed; with other optimizers it is the mean of steps along
 * full-sized gradients. The optimizer's state is per rank.
 */
#include <sched.h>
#include <stdatomic.h>

#include "core/clock.h"
#include "core/mem.h"
#include "strategy/strategy.h"
#include "strategy/weights.h"

#define SSP_LINE  128                /* two cache lines, because the prefetcher fetches pairs */
#define SSP_CHUNK ((size_t)16 << 10) /* weights per lock */

#define SSP_SPINS    64
#define SSP_YIELD_NS UINT64_C(1000000)
#define SSP_SLEEP_US 100

/* Progress of a rank. */
typedef struct ssp_clock {
    _Alignas(SSP_LINE) _Atomic uint64_t added; /* steps added to the weights */
    _Atomic uint64_t read;                     /* step for which the weights were last read */
} ssp_clock;

typedef struct ssp_lock {
    _Alignas(SSP_LINE) _Atomic uint32_t held;
} ssp_lock;

typedef struct ssp_state {
    int64_t bound;
    size_t n_chunk, bytes;
    void *window;     /* owned: clocks, locks, weights */
    ssp_clock *clock; /* (ranks) */
    ssp_lock *lock;   /* (n_chunk) */
    float *weights;   /* shared by all ranks */
    float *view;      /* owned; the weights as last read */
    uint64_t *lack;   /* owned, (bound + 1): number of reads by staleness */
} ssp_state;

/* State of a wait. */
typedef struct ssp_wait {
    uint64_t spins, start_ns;
} ssp_wait;

static const co_key ssp_keys[] = {
    {.name = "bound",
     .type = CO_KEY_INT,
     .offset = offsetof(ssp_state, bound),
     .fallback = "3",
     .min = 0,
     .max = 1000,
     .help = "steps that a rank may be ahead of the slowest; 0: the steps of sync"},
    CO_KEYS_END,
};

static co_status ssp_init(co_strategy *strategy)
{
    ssp_state *self = strategy->self;
    const size_t n = strategy->store->n, ranks = (size_t)co_comm_size(strategy->comm);

    strategy->own_state = true;
    self->n_chunk = (n + SSP_CHUNK - 1) / SSP_CHUNK;
    self->bytes = ranks * sizeof(ssp_clock) + self->n_chunk * sizeof(ssp_lock) + n * sizeof(float);
    self->view = co_calloc_aligned(n, sizeof(float));
    self->lack = co_calloc((size_t)self->bound + 1, sizeof(*self->lack));
    return self->view && self->lack ? CO_OK : CO_E_NOMEM;
}

static co_status ssp_start(co_strategy *strategy)
{
    ssp_state *self = strategy->self;
    const co_store *store = strategy->store;

    CO_TRY(co_weights_broadcast(strategy));
    CO_TRY(co_comm_window_create(&self->window, strategy->comm, self->bytes));
    self->clock = self->window;
    self->lock = (ssp_lock *)(self->clock + co_comm_size(strategy->comm));
    self->weights = (float *)(self->lock + self->n_chunk);
    store->vector->copy(store->queue, self->view, store->param, store->n);
    if (co_comm_rank(strategy->comm) == 0)
        store->vector->copy(store->queue, self->weights, store->param, store->n);
    return co_comm_barrier(strategy->comm);
}

/* Back off for a moment; fails if another rank has failed or the wait times out. `rank`: the one
   waited for; -1: the holder of a lock. */
static co_status ssp_hold(const co_strategy *strategy, ssp_wait *wait, int rank)
{
    const co_comm *comm = strategy->comm;
    uint64_t waited_ns;

    if (++wait->spins < SSP_SPINS)
        return CO_OK;
    CO_TRY(co_comm_progress(strategy->comm));
    if (!wait->start_ns)
        wait->start_ns = co_clock_ns();
    waited_ns = co_clock_ns() - wait->start_ns;
    if (waited_ns >= (uint64_t)co_comm_timeout(comm) * 1000000) {
        if (rank < 0)
            return co_fail(CO_E_TIMEOUT, "rank %d timed out after %u ms, waiting for the weights",
                           co_comm_rank(comm), co_comm_timeout(comm));
        return co_fail(CO_E_TIMEOUT, "rank %d timed out after %u ms, waiting for a step of rank %d",
                       co_comm_rank(comm), co_comm_timeout(comm), rank);
    }
    if (waited_ns < SSP_YIELD_NS)
        sched_yield();
    else
        co_clock_sleep_us(SSP_SLEEP_US);
    return CO_OK;
}

static co_status ssp_take(const co_strategy *strategy, ssp_lock *lock)
{
    ssp_wait wait = {0, 0};

    while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire))
        CO_TRY(ssp_hold(strategy, &wait, -1));
    return CO_OK;
}

static void ssp_give(ssp_lock *lock)
{
    atomic_store_explicit(&lock->held, 0, memory_order_release);
}

/* Wait until every rank has added `steps` steps; *slowest: steps added by the slowest. */
static co_status ssp_wait_added(uint64_t *slowest, const co_strategy *strategy, uint64_t steps)
{
    const ssp_state *self = strategy->self;
    ssp_wait wait = {0, 0};

    *slowest = UINT64_MAX;
    for (int rank = 0; rank < co_comm_size(strategy->comm); rank++) {
        uint64_t added;

        while ((added = atomic_load_explicit(&self->clock[rank].added, memory_order_acquire)) <
               steps)
            CO_TRY(ssp_hold(strategy, &wait, rank));
        *slowest = added < *slowest ? added : *slowest;
    }
    return CO_OK;
}

/* Wait until every rank has read for this step or a later one. */
static co_status ssp_wait_read(const co_strategy *strategy, uint64_t step)
{
    const ssp_state *self = strategy->self;
    ssp_wait wait = {0, 0};

    for (int rank = 0; rank < co_comm_size(strategy->comm); rank++)
        while (atomic_load_explicit(&self->clock[rank].read, memory_order_acquire) < step)
            CO_TRY(ssp_hold(strategy, &wait, rank));
    return CO_OK;
}

/* The i-th chunk that this rank visits. Ranks start at different chunks, so they rarely collide. */
static size_t ssp_chunk(const co_strategy *strategy, size_t i)
{
    const ssp_state *self = strategy->self;
    const size_t rank = (size_t)co_comm_rank(strategy->comm);

    return (i + self->n_chunk * rank / (size_t)co_comm_size(strategy->comm)) % self->n_chunk;
}

static size_t ssp_chunk_end(const co_strategy *strategy, size_t chunk)
{
    const size_t end = (chunk + 1) * SSP_CHUNK;

    return end < strategy->store->n ? end : strategy->store->n;
}

/* Add the change of this step to the shared weights. */
static co_status ssp_add(const co_strategy *strategy)
{
    const ssp_state *self = strategy->self;
    const co_store *store = strategy->store;
    const float share = 1.0F / (float)co_comm_size(strategy->comm);

    for (size_t i = 0; i < self->n_chunk; i++) {
        const size_t chunk = ssp_chunk(strategy, i), begin = chunk * SSP_CHUNK;
        const size_t end = ssp_chunk_end(strategy, chunk);

        CO_TRY(ssp_take(strategy, &self->lock[chunk]));
        store->vector->add_difference(store->queue, self->weights + begin, share,
                                      store->param + begin, self->view + begin, end - begin);
        ssp_give(&self->lock[chunk]);
    }
    return CO_OK;
}

static co_status ssp_read(const co_strategy *strategy)
{
    const ssp_state *self = strategy->self;
    const co_store *store = strategy->store;

    for (size_t i = 0; i < self->n_chunk; i++) {
        const size_t chunk = ssp_chunk(strategy, i), begin = chunk * SSP_CHUNK;
        const size_t end = ssp_chunk_end(strategy, chunk);

        CO_TRY(ssp_take(strategy, &self->lock[chunk]));
        store->vector->copy(store->queue, self->view + begin, self->weights + begin, end - begin);
        ssp_give(&self->lock[chunk]);
    }
    store->vector->copy(store->queue, store->param, self->view, store->n);
    return CO_OK;
}

static co_status ssp_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    const co_store *store = strategy->store;
    const int ranks = co_comm_size(strategy->comm);

    (void)step;
    if (ranks > 1)
        store->vector->scale(store->queue, store->grad, ranks, store->grad, store->n);
    return CO_OK;
}

static co_status ssp_after_update(co_strategy *strategy, const co_strategy_step *step)
{
    ssp_state *self = strategy->self;
    ssp_clock *clock = &self->clock[co_comm_rank(strategy->comm)];
    const uint64_t bound = (uint64_t)self->bound, next = step->step + 1;
    uint64_t slowest;

    CO_TRY(ssp_wait_read(strategy, step->step > bound ? step->step - bound : 0));
    CO_TRY(ssp_add(strategy));
    atomic_store_explicit(&clock->added, next, memory_order_release);
    CO_TRY(ssp_wait_added(&slowest, strategy, next > bound ? next - bound : 0));
    self->lack[next > slowest ? next - slowest : 0]++;
    CO_TRY(ssp_read(strategy));
    atomic_store_explicit(&clock->read, next, memory_order_release);
    return co_comm_progress(strategy->comm);
}

/* After it, all ranks have all steps of all ranks. */
static co_status ssp_meet(co_strategy *strategy)
{
    CO_TRY(co_comm_barrier(strategy->comm));
    return ssp_read(strategy);
}

/* Clocks count steps from the start of the run. The barrier keeps a rank from changing weights that
   another is still reading. */
static co_status ssp_resume(co_strategy *strategy, uint64_t step)
{
    ssp_state *self = strategy->self;
    const co_store *store = strategy->store;
    ssp_clock *clock = &self->clock[co_comm_rank(strategy->comm)];

    store->vector->copy(store->queue, self->view, store->param, store->n);
    if (co_comm_rank(strategy->comm) == 0)
        store->vector->copy(store->queue, self->weights, store->param, store->n);
    atomic_store(&clock->added, step);
    atomic_store(&clock->read, step);
    return co_comm_barrier(strategy->comm);
}

/* Read all steps, and sum the counts of staleness over ranks. */
static co_status ssp_finish(co_strategy *strategy)
{
    ssp_state *self = strategy->self;

    CO_TRY(ssp_meet(strategy));
    return co_comm_allreduce(strategy->comm, self->lack, self->lack, (size_t)self->bound + 1,
                             CO_I64, CO_SUM);
}

static co_strategy_counts ssp_report(const co_strategy *strategy)
{
    const ssp_state *self = strategy->self;

    return (co_strategy_counts){"staleness", self->lack, (size_t)self->bound + 1};
}

static void ssp_fini(co_strategy *strategy)
{
    ssp_state *self = strategy->self;

    co_comm_window_destroy(strategy->comm, self->window, self->bytes);
    co_free(self->view);
    co_free(self->lack);
}

const co_strategy_ops co_strategy_ssp = {
    .name = "ssp",
    .summary = "asynchronous SGD, no rank more than `bound` steps ahead (stale synchronous)",
    .keys = ssp_keys,
    .self_size = sizeof(ssp_state),
    .needs = CO_STRATEGY_NEEDS_WINDOW,
    .init = ssp_init,
    .start = ssp_start,
    .before_update = ssp_before_update,
    .after_update = ssp_after_update,
    .finish = ssp_finish,
    .report = ssp_report,
    .quiesce = ssp_meet,
    .resume = ssp_resume,
    .fini = ssp_fini,
};
