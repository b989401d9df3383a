/*
 * ext/strategy.h - what the author of a synchronisation algorithm fills in.
 *
 * A strategy never sees layers, only ranges of one flat store and a communicator. Order of calls in
 * one step:
 *
 *   grad_ready (as ranges become final, during backward) -> before_update
 *     -> [clipping, optimizer] -> after_update
 */
#ifndef COHORT_EXT_STRATEGY_H
#define COHORT_EXT_STRATEGY_H

#include <cohort/comm.h>
#include <cohort/ext/plugin.h>
#include <cohort/ext/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One step, as this rank sees it. */
typedef struct co_strategy_step {
    uint64_t step;   /* steps before this one */
    uint64_t local;  /* samples of this rank; may be 0 */
    uint64_t global; /* samples of all ranks */
} co_strategy_step;

#define CO_STRATEGY_MAX_COUNTERS 4

/** What finish would make of the ranks' weights now, computed by each rank without communication:
 * their mean weighted by shares, and then x - rate (x - mean) - velocity v, where x and v are the
 * arrays 0 and 1 of persistent. Running statistics are averaged by the same shares. */
typedef struct co_strategy_merge {
    double share;          /* of this rank; all shares add up to 1, or all are 0: equal shares */
    double rate, velocity; /* the same on all ranks; 1 and 0: the mean itself */
} co_strategy_merge;

typedef struct co_strategy_ops co_strategy_ops;

typedef struct co_strategy {
    const co_strategy_ops *ops;
    void *self;             /* owned; the strategy's keys, then its state */
    co_comm *comm;          /* borrowed */
    struct co_store *store; /* borrowed */
    const co_tree *tree;    /* borrowed: the gradient is summed over its leaves, the shards of the
                               batch, in its order; NULL: over ranks, in any */
    /* What the optimizer updates after before_update: this range of the store. All of it at the
     * start; init, start or before_update may narrow it, an empty one skips the update. */
    size_t update_begin, update_end;
    /* Set by init where ranks may differ after an update: in their weights; in the optimizer's
     * state. A checkpoint then holds a copy of each rank. */
    bool own_weights, own_state;
    /* Set by init where a gradient may be used in a later step than its own and is not kept in a
     * persistent array. */
    bool delayed;
    /* From start on: the optimizer needs whole tensors, so no range to update may cut one. */
    bool whole_tensors;
    /* Updates [begin, end) of the weights once their gradient is final, possibly still during
     * backward: these weights are not read again in this step. Set before the first grad_ready of a
     * step; NULL where the optimizer needs all of the gradient first. A strategy that calls it must
     * have called it for the whole range to update by the end of before_update, and sets
     * `updated`. */
    co_status (*update)(void *updater, size_t begin, size_t end);
    void *updater; /* borrowed */
    bool updated;
    bool on_host; /* set by init where a step does something besides what it queues, so that a
                     capture of the queued work would not be the step */
    /* Draws this rank's initial weights again, with the run's seed plus `offset`. Set from start
     * on; NULL where that is impossible. */
    co_status (*draw_weights)(void *owner, uint64_t offset);
    void *owner; /* borrowed; for draw_weights */
    /* Set by init or start where ranks update the parts that co_store_slice gives them, and so have
     * the optimizer's state of no other: these ranks, in order. Borrowed; NULL: each updates all.
     */
    co_comm *divided;
    /* Likewise, on the host, where these are instead the slices of each bucket of this reducer,
     * which sums a rank's slices alone: before_update leaves the rest of grad undefined. NULL: not
     * so. */
    const struct co_reducer *sliced;
    /* From start on: the norm of the whole gradient is needed before the update. */
    bool whole_norm;
    /* Set by start where before_update leaves the sum in the rank's own part of grad alone, and the
     * rest of it undefined; with `sliced` it is so anyway. */
    bool own_sums;
    /* Set by init where each of several ranks updates a part of the weights, which may cut a
     * tensor. */
    bool divides;
    /* Set by init: steps from a gradient to the update that uses it, where that is a fixed number
     * above 0. A run of no more steps is refused, since it would update nothing. */
    uint64_t delay;
} co_strategy;

/** What a strategy requires. */
typedef enum co_strategy_needs {
    CO_STRATEGY_NEEDS_NOTHING = 0,
    CO_STRATEGY_NEEDS_WINDOW = 1, /* memory that ranks share: co_comm_window_create */
    CO_STRATEGY_NEEDS_THREADS = 2 /* ranks are threads of one process */
} co_strategy_needs;

/** What a strategy has counted in a run, for its summary. */
typedef struct co_strategy_counts {
    const char *name;      /* of the array in summary.json; NULL: there is none */
    const uint64_t *count; /* (n), owned by the strategy */
    size_t n;
} co_strategy_counts;

struct co_strategy_ops {
    const char *name;
    const char *summary;
    const co_key *keys;
    size_t self_size;
    unsigned needs; /* co_strategy_needs flags */
    /** Keys have been read: allocate memory. fini follows, even after a failure. NULL: nothing. */
    co_status (*init)(co_strategy *strategy);
    /** Before the first step: weights and buffers are initialised. NULL: nothing. */
    co_status (*start)(co_strategy *strategy);
    /** Whether ranks hold weights of their own at this step: the gradient is then the mean over
     *  the rank's own samples (0 without any), and running statistics are not averaged for an
     *  evaluation. Else it is the rank's part of the mean over the global batch, so that the sum
     *  over ranks is exact. NULL: never. */
    bool (*is_local)(const co_strategy *strategy, uint64_t step);
    /** Whether all ranks take the same steps and hold the same weights after each. NULL: they do
     *  not. */
    bool (*replicas_in_sync)(const co_strategy *strategy);
    /** Whether each rank waits in this step for data that all others send in it, so that metrics
     *  of the step can be summed with it without another wait. NULL: as replicas_in_sync. */
    bool (*synchronizes)(const co_strategy *strategy, uint64_t step);
    /** Gradients [begin, end) of the store are final on this rank. Not called on a rank without
     *  samples: before_update then finds all gradients zero and unannounced. NULL: nothing. */
    co_status (*grad_ready)(co_strategy *strategy, size_t begin, size_t end);
    /** With a tree, once for each shard of this rank except the last: grad holds the shard's whole
     *  gradient, and may be overwritten afterwards; grad_ready announces the last one's. NULL: the
     *  strategy does not support shards, and a config with shards is refused. */
    co_status (*shard_ready)(co_strategy *strategy);
    /** On return grad holds the gradient that the optimizer uses. NULL: nothing. */
    co_status (*before_update)(co_strategy *strategy, const co_strategy_step *step);
    /** The weights have been updated. NULL: nothing. */
    co_status (*after_update)(co_strategy *strategy, const co_strategy_step *step);
    /** After the last step; may change the weights, which are then evaluated and saved. NULL:
     *  nothing. */
    co_status (*finish)(co_strategy *strategy);
    /** The effect that finish would have, for the weights of a checkpoint. NULL: the plain mean. */
    co_strategy_merge (*merge)(const co_strategy *strategy);
    /** After finish, over all ranks. NULL: nothing is counted. */
    co_strategy_counts (*report)(const co_strategy *strategy);
    /** The state of the run is about to be captured, after an update: complete operations in
     *  flight, so that everything that later steps depend on is in the store, the optimizer's
     *  state, the persistent arrays and the counters. Collective; does not change the course of the
     *  run. NULL: nothing. */
    co_status (*quiesce)(co_strategy *strategy);
    /** Array i of the state that the strategy keeps between steps besides the store and the
     *  optimizer's state. It has the length of the store and, after quiesce, is the same on all
     *  ranks unless is_partial_sum. NULL after the last. Their number is known after init. NULL:
     *  there are none. */
    float *(*persistent)(const co_strategy *strategy, size_t i);
    /** Whether persistent array i is this rank's own part of a sum over ranks: a checkpoint then
     *  holds a copy of each rank, and on another number of ranks all get equal parts of that sum.
     *  NULL: none is. */
    bool (*is_partial_sum)(const co_strategy *strategy, size_t i);
    /** Persistent counters of this rank alone, at most CO_STRATEGY_MAX_COUNTERS. NULL: none. */
    uint64_t *(*counters)(const co_strategy *strategy, size_t *n);
    /** Between before_update and after_update: gradients of later steps have a loss scale `factor`
     *  times as large; multiply what is kept of earlier ones. NULL: nothing is kept or, where there
     *  is a persistent array or `delayed` is set, a loss scale is refused. */
    void (*rescale)(co_strategy *strategy, double factor);
    /** After start, once the store, the optimizer's state, the persistent arrays and the counters
     *  have been restored to those after `step` steps: restore the rest. Collective. NULL:
     *  nothing. */
    co_status (*resume)(co_strategy *strategy, uint64_t step);
    /** Free what init and later hooks allocated; may be called in the middle of a step, after a
     *  failure. */
    void (*fini)(co_strategy *strategy);
};

#ifdef __cplusplus
}
#endif
#endif
