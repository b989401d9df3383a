/*
 * ext/strategy.h - what the author of a synchronisation algorithm fills in.
 *
 * A strategy never sees layers: only ranges of one flat store, and a communicator. Order of calls
 * in one step:
 *
 *   grad_ready (as ranges become final, during backward) -> before_update
 *     -> [clipping, optimizer] -> after_update
 */
#ifndef COHORT_EXT_STRATEGY_H
#define COHORT_EXT_STRATEGY_H

#include <cohort/comm.h>
#include <cohort/ext/keys.h>

#ifdef __cplusplus
extern "C" {
#endif

struct co_store;

typedef struct co_strategy_ops co_strategy_ops;

typedef struct co_strategy {
    const co_strategy_ops *ops;
    void *self;             /* owned; the strategy's keys, then its state */
    co_comm *comm;          /* borrowed */
    struct co_store *store; /* borrowed */
} co_strategy;

struct co_strategy_ops {
    const char *name;
    const char *summary;
    const co_key *keys;
    size_t self_size;
    /** Keys are read; take memory. fini follows, even after a failure. NULL: nothing. */
    co_status (*init)(co_strategy *strategy);
    /** Before the first step: weights and buffers are initialised. NULL: nothing. */
    co_status (*start)(co_strategy *strategy);
    /** Gradients [begin, end) of the store are final on this rank; they are already divided by
     *  the size of the global batch. Not called for a rank with no samples: before_update
     *  then finds all gradients zero and unannounced. NULL: nothing. */
    co_status (*grad_ready)(co_strategy *strategy, size_t begin, size_t end);
    /** Afterwards grad holds what the optimizer shall use. NULL: nothing. */
    co_status (*before_update)(co_strategy *strategy, uint64_t step);
    /** Weights have moved. NULL: nothing. */
    co_status (*after_update)(co_strategy *strategy, uint64_t step);
    /** After the last step, before saving. NULL: nothing. */
    co_status (*finish)(co_strategy *strategy);
    /** Free what init and later hooks took; may come in the middle of a step, after a failure. */
    void (*fini)(co_strategy *strategy);
};

#ifdef __cplusplus
}
#endif
#endif
