/* distributed.h - the distributed optimizer, for the rest of src/train. */
#ifndef CO_STEP_DISTRIBUTED_H
#define CO_STEP_DISTRIBUTED_H

#include <cohort/ext/strategy.h>
#include <cohort/train.h>

#include "core/config.h"
#include "step/loss_scale.h"

#define CO_DISTRIBUTED_MAX_NAME 32

/* The config text of co_distributed_options as values of a config, which is borrowed. */
typedef struct co_distributed_values {
    const co_value *optimizer, *schedule, *strategy;
    co_config *config;
    int shards; /* to be checked with; 0: auto */
} co_distributed_values;

co_status co_distributed_create_from(co_distributed **out, const co_distributed_values *values,
                                     const co_distributed_options *options);

/* The ranks that this one shares its weights with, itself among them; NULL: it has its own. */
co_comm *co_distributed_sharers(const co_distributed *distributed);
/* Whether ranks hold weights of their own now. */
bool co_distributed_is_local(const co_distributed *distributed);
/* Whether all ranks wait for each other in the step under way. */
bool co_distributed_synchronizes(const co_distributed *distributed);
/* Whether co_distributed_finish may change the weights. */
bool co_distributed_ends_with_finish(const co_distributed *distributed);
/* A persistent array besides the weights and running statistics: of the optimizer's state or of the
   strategy, of the length of the store. */
typedef struct co_distributed_array {
    char name[CO_DISTRIBUTED_MAX_NAME]; /* "momentum_buffer", "local.0" */
    float *data;
    bool own;   /* each rank has its own */
    bool share; /* and that is its part of a sum over ranks */
    bool carry; /* of the strategy; else of the optimizer */
} co_distributed_array;
/* Array i; false after the last. */
bool co_distributed_array_at(co_distributed_array *out, const co_distributed *distributed, int i);
/* What the strategy's finish would make of ranks' weights now (ext/strategy.h). */
co_strategy_merge co_distributed_merge(const co_distributed *distributed);
/* The strategy's counters of this rank; NULL: none. */
uint64_t *co_distributed_counters(const co_distributed *distributed, size_t *n);
/* Whether each rank may have weights of its own after an update. */
bool co_distributed_owns_weights(const co_distributed *distributed);
/* Complete operations in flight between two steps, so that the arrays above are the whole state.
   Collective. */
co_status co_distributed_quiesce(co_distributed *distributed);
/* Whether co_distributed_quiesce costs nothing: replicas are in sync and nothing is in flight. */
bool co_distributed_is_settled(const co_distributed *distributed);
/* Updates that this rank's optimizer has made. */
uint64_t co_distributed_updates(const co_distributed *distributed);
/* Continue after `step` steps, `updates` of them updates: all arrays and counters have been put
   back. Collective. */
co_status co_distributed_resume(co_distributed *distributed, uint64_t step, uint64_t updates);

/* The loss scale. A checkpoint keeps its state. */
co_scaler *co_distributed_scaler(co_distributed *distributed);
/* What a step has found, after co_distributed_step: on a device the host learns it later, in the
   order of steps; else it knows already. CO_E_FAILED as co_scaler_take. */
co_status co_distributed_take(co_distributed *distributed, const co_step_values *values);
/* This rank's loss in the step under way is not a number: its gradients have overflowed, whatever
   they look like. Only where the host may write the store's values. */
void co_distributed_note_overflow(co_distributed *distributed);

/* What the strategy has counted; after co_distributed_finish. */
co_strategy_counts co_distributed_report(const co_distributed *distributed);

/* Time that this rank has spent in its strategy since the first step: posting, reducing, waiting.
 */
uint64_t co_distributed_sync_ns(const co_distributed *distributed);

/* The arrays that a config will have, before there is any model: `out` (max), without data. */
co_status co_distributed_list(co_distributed_array *out, int *n, bool *own_weights, int max,
                              const co_distributed_values *values);
/* Whether the config names plugins that exist and keys that they know; what the strategy requires
   (co_strategy_needs), whether replicas are in sync after every step, and whether ranks synchronize
   in every step and leave nothing in flight. */
co_status co_distributed_check(unsigned *needs, bool *common, bool *in_step,
                               const co_distributed_values *values);

#endif
