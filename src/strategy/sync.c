/*
 * sync.c - synchronous SGD: in every step the gradients of all ranks are summed before the update,
 * so all ranks have the same weights.
 *
 * Gradients are already divided by the size of the global batch, so their plain sum is the gradient
 * of the whole batch however its samples are distributed: sum of m_k/n g_k. The sum is computed
 * bucket by bucket while backward runs; with `compress`, of the compressed gradients.
 *
 * With `update: parts`, ranks that share memory each update a part of the weights (whole cache
 * lines) instead of all of them, as the strategy threads does. The weights are then one array for
 * all ranks of a host. Nobody writes it before the sum is complete, which is after all ranks have
 * read it, and the step ends when all have written their parts. The arithmetic for each weight is
 * the same, so the bits are those of `update: whole`.
 *
 * With `update: zero` all ranks of all hosts divide the update, each with weights of its own, and
 * gather the others' parts after it (ZeRO: Rajbhandari et al., arXiv:1910.02054). Of gradients each
 * gets only the sum of its part then, a slice of each bucket: the two halves of an all-reduce, one
 * before and one after the update. Compressed gradients are summed for all; parts are then slices
 * of the whole store. On a device, whose memory ranks do not share, `parts` is the same among the
 * ranks of a host. There parts are slices of the store, too, so that a rank's state is one block,
 * and each bucket is summed for the rank in whose part it is; for all, where that is not enough:
 * with shards, and if other hosts have parts of their own.
 */
#include "comm/queued.h"
#include "device/device.h"
#include "strategy/compress.h"
#include "strategy/parts.h"
#include "strategy/reduce.h"
#include "strategy/shared.h"
#include "strategy/strategy.h"
#include "strategy/weights.h"
#include "tensor/store.h"

/* Below this size, fetching the weights that another rank wrote from its caches, plus one more
   wait, costs more than the update saves. */
#define SYNC_PARTS_MIN ((size_t)1 << 23)

typedef struct sync_state {
    double bucket_mib;
    int reduction, update;
    float *weights;                 /* owned; shared by all ranks; NULL: each rank has its own */
    float *slice;                   /* owned; room for this rank's part of the weights; or NULL */
    const co_value *compress_value; /* NULL: none */
    co_compress *compress;          /* owned; likewise */
    co_reducer reducer;             /* sliced: see there */
} sync_state;

enum { SYNC_SUM, SYNC_MEAN };
static const char *const sync_reductions[] = {"sum", "mean", NULL};

enum { SYNC_AUTO, SYNC_WHOLE, SYNC_PARTS, SYNC_ZERO };
static const char *const sync_updates[] = {"auto", "whole", "parts", "zero", NULL};

static const co_key sync_keys[] = {
    {.name = "reduction",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(sync_state, reduction),
     .fallback = "sum",
     .choices = sync_reductions,
     .help = "sum: the gradient of the whole batch; mean: that divided by the ranks once more"},
    {.name = "compress",
     .type = CO_KEY_VALUE,
     .offset = offsetof(sync_state, compress_value),
     .fallback = "~",
     .choices = CO_KEY_TAKES("a name of `cohort list compressors`, or {name: ..., key: value}"),
     .help =
         "compression of gradients: a name of `cohort list compressors`, or {name, key: value}"},
    {.name = "update",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(sync_state, update),
     .fallback = "auto",
     .choices = sync_updates,
     .help = "parts: each rank updates its part of weights that all of its host share; zero: its "
             "part among all ranks, and gathers the others'; whole: each updates all of its own; "
             "auto: parts where that is possible and pays"},
    CO_REDUCER_KEY(sync_state, bucket_mib),
    CO_KEYS_END,
};

/* Whether a rank needs the sum of its part of the gradient alone. */
static bool sync_slices(const co_strategy *strategy)
{
    const sync_state *self = strategy->self;

    return self->update == SYNC_ZERO && !self->compress && co_comm_size(strategy->comm) > 1 &&
           co_device_is_host(strategy->store->device);
}

static co_status sync_init(co_strategy *strategy)
{
    sync_state *self = strategy->self;
    const co_reduce_op op = self->reduction == SYNC_MEAN ? CO_AVG : CO_SUM;
    float *grad = strategy->store->grad;

    if (strategy->tree && self->reduction == SYNC_MEAN)
        return co_fail(CO_E_USAGE,
                       "reduction: mean divides by the number of ranks, of which shards make the "
                       "result independent; use `reduction: sum`, or let shards be auto");
    CO_TRY(co_compress_create(&self->compress, self->compress_value, strategy, self->bucket_mib));
    strategy->on_host = self->compress != NULL;
    strategy->divides = self->update == SYNC_PARTS || self->update == SYNC_ZERO;
    if (sync_slices(strategy))
        return co_reducer_init_sliced(&self->reducer, strategy, grad, self->bucket_mib, op);
    return co_reducer_init(&self->reducer, strategy, grad, self->bucket_mib, op);
}

static bool sync_replicas_in_sync(const co_strategy *strategy)
{
    (void)strategy;
    return true;
}

/* Each rank may decide for itself: the values are the same, shared or not. */
static bool sync_divides(const co_strategy *strategy, const co_comm *local)
{
    const sync_state *self = strategy->self;

    if (!local || self->update == SYNC_WHOLE || !co_device_is_host(strategy->store->device))
        return false;
    return self->update == SYNC_PARTS || (co_comm_size(local) > 1 && !strategy->whole_tensors &&
                                          strategy->store->n >= SYNC_PARTS_MIN);
}

/* Whether ranks can make the norm of the whole gradient of squares in their own parts. */
static bool sync_parts_are_blocks(const co_strategy *strategy, const co_comm *comm)
{
    const size_t each = co_store_slice(strategy->store->n, 1, co_comm_size(comm));

    return each > 0 && each % CO_VECTOR_SQUARES == 0;
}

/* Whether the sum of its part is enough for each of the ranks that divide the update. */
static bool sync_owns(const co_strategy *strategy, const co_comm *comm)
{
    const sync_state *self = strategy->self;

    return comm == strategy->comm && co_comm_size(comm) > 1 && !self->compress && !strategy->tree &&
           (!strategy->whole_norm || sync_parts_are_blocks(strategy, comm)) &&
           !co_device_is_host(strategy->store->device);
}

/* The ranks of `comm` divide the update, and each has weights of its own. */
static co_status sync_start_zero(co_strategy *strategy, co_comm *comm)
{
    sync_state *self = strategy->self;

    if (self->reducer.sliced) {
        strategy->divided = comm;
        strategy->sliced = &self->reducer;
        return co_weights_broadcast(strategy);
    }
    co_parts_divide(strategy, comm);
    strategy->own_sums = sync_owns(strategy, comm);
    if (strategy->own_sums)
        CO_TRY(co_reducer_divide(&self->reducer, strategy, self->bucket_mib));
    CO_TRY(co_store_take_array(&self->slice, strategy->store, co_parts_room(strategy) + 1));
    return co_weights_broadcast(strategy);
}

static co_status sync_start(co_strategy *strategy)
{
    co_comm *local = co_comm_local(strategy->comm);
    sync_state *self = strategy->self;
    co_status st;

    if (self->update == SYNC_ZERO)
        return sync_start_zero(strategy, strategy->comm);
    if (self->update == SYNC_PARTS && local && !co_device_is_host(strategy->store->device))
        return sync_start_zero(strategy, local);
    if (!sync_divides(strategy, local))
        return co_weights_broadcast(strategy);
    st = co_shared_open(&self->weights, strategy, local);
    if (st == CO_E_UNSUPPORTED && self->update == SYNC_AUTO)
        return CO_OK; /* fall back to own weights, which are the same on all ranks */
    CO_TRY(st);
    co_parts_divide(strategy, local);
    return CO_OK;
}

/* Update this rank's part of a bucket. */
static co_status sync_update(void *arg, size_t begin, size_t end)
{
    co_strategy *strategy = arg;
    const sync_state *self = strategy->self;
    size_t from = begin > strategy->update_begin ? begin : strategy->update_begin;
    size_t to = end < strategy->update_end ? end : strategy->update_end;

    strategy->updated = true;
    if (strategy->sliced)
        co_reducer_slice(&from, &to, &self->reducer, self->reducer.n_taken - 1,
                         co_comm_rank(strategy->comm));
    return from < to ? strategy->update(strategy->updater, from, to) : CO_OK;
}

static co_status sync_grad_ready(co_strategy *strategy, size_t begin, size_t end)
{
    sync_state *self = strategy->self;

    if (co_compress_is_on(self->compress))
        return co_compress_ready(self->compress, begin, end);
    CO_TRY(co_reducer_ready(&self->reducer, begin, end));
    return strategy->update ? co_reducer_take(&self->reducer, sync_update, strategy) : CO_OK;
}

static co_status sync_shard_ready(co_strategy *strategy)
{
    sync_state *self = strategy->self;

    co_reducer_next_shard(&self->reducer);
    return co_comm_progress(strategy->comm);
}

/* The gradient becomes the sum of what was sent, or its mean. */
static co_status sync_decompress(co_strategy *strategy)
{
    sync_state *self = strategy->self;
    const co_store *store = strategy->store;

    CO_TRY(co_compress_finish(self->compress));
    if (self->reduction == SYNC_MEAN)
        store->vector->divide(store->queue, store->grad, (float)co_comm_size(strategy->comm),
                              store->n);
    return CO_OK;
}

static co_status sync_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    sync_state *self = strategy->self;

    (void)step;
    if (co_compress_is_on(self->compress)) {
        CO_TRY(sync_decompress(strategy));
    } else {
        CO_TRY(co_reducer_post(&self->reducer));
        CO_TRY(co_reducer_wait(&self->reducer, strategy->update ? sync_update : NULL, strategy));
    }
    co_compress_next(self->compress);
    return CO_OK;
}

static co_status sync_after_update(co_strategy *strategy, const co_strategy_step *step)
{
    sync_state *self = strategy->self;

    (void)step;
    if (strategy->sliced)
        return co_reducer_gather(&self->reducer, strategy->store->param);
    if (self->slice)
        return co_parts_gather(strategy, self->slice);
    return self->weights ? co_comm_barrier(co_comm_local(strategy->comm)) : CO_OK;
}

static float *sync_persistent(const co_strategy *strategy, size_t i)
{
    return co_compress_persistent(((const sync_state *)strategy->self)->compress, i);
}

static bool sync_is_partial_sum(const co_strategy *strategy, size_t i)
{
    return co_compress_is_partial_sum(((const sync_state *)strategy->self)->compress, i);
}

static void sync_rescale(co_strategy *strategy, double factor)
{
    co_compress_rescale(((sync_state *)strategy->self)->compress, factor);
}

static co_status sync_resume(co_strategy *strategy, uint64_t step)
{
    co_compress_resume(((sync_state *)strategy->self)->compress, step);
    return CO_OK;
}

static co_strategy_counts sync_report(const co_strategy *strategy)
{
    const sync_state *self = strategy->self;

    if (!self->compress)
        return (co_strategy_counts){NULL, NULL, 0};
    return (co_strategy_counts){"gradient_bytes", co_compress_bytes(self->compress), 2};
}

static void sync_fini(co_strategy *strategy)
{
    sync_state *self = strategy->self;

    co_reducer_fini(&self->reducer);
    co_shared_close(strategy, co_comm_local(strategy->comm), self->weights);
    co_compress_destroy(self->compress);
    if (self->slice && strategy->divided != strategy->comm)
        co_comm_release_devices(strategy->divided);
    co_store_give_array(strategy->store, self->slice);
}

const co_strategy_ops co_strategy_sync = {
    .name = "sync",
    .summary = "add up the gradients of all ranks at every step (synchronous SGD)",
    .keys = sync_keys,
    .self_size = sizeof(sync_state),
    .init = sync_init,
    .start = sync_start,
    .replicas_in_sync = sync_replicas_in_sync,
    .grad_ready = sync_grad_ready,
    .shard_ready = sync_shard_ready,
    .before_update = sync_before_update,
    .after_update = sync_after_update,
    .report = sync_report,
    .persistent = sync_persistent,
    .is_partial_sum = sync_is_partial_sum,
    .rescale = sync_rescale,
    .resume = sync_resume,
    .fini = sync_fini,
};
