/* distributed.h - the distributed optimizer, for the rest of src/train. */
#ifndef CO_TRAIN_DISTRIBUTED_H
#define CO_TRAIN_DISTRIBUTED_H

#include <cohort/ext/strategy.h>
#include <cohort/train.h>

#include "core/config.h"

/* The config text of co_distributed_options as values of a config, which is borrowed. */
typedef struct co_distributed_values {
    const co_value *optimizer, *schedule, *strategy;
    co_config *config;
} co_distributed_values;

co_status co_distributed_create_from(co_distributed **out, const co_distributed_values *values,
                                     const co_distributed_options *options);

/* Whether ranks hold weights of their own now. */
bool co_distributed_is_local(const co_distributed *distributed);
/* Whether co_distributed_finish may move the weights. */
bool co_distributed_ends_with_finish(const co_distributed *distributed);
/* State that a checkpoint keeps beside the weights, each array over the whole store: the
   optimizer's, in its order. i counts from 0; NULL past the last. */
float *co_distributed_state(const char **name, const co_distributed *distributed, int i);
/* What the strategy has counted; after co_distributed_finish. */
co_strategy_counts co_distributed_report(const co_distributed *distributed);

/* Time that this rank has spent in its strategy since the first step: posting, reducing, waiting.
 */
uint64_t co_distributed_sync_ns(const co_distributed *distributed);

/* Whether the config names plugins that exist and keys that they know; what the strategy cannot do
   without (co_strategy_needs), and whether ranks hold the same weights after every step. */
co_status co_distributed_check(unsigned *needs, bool *common, const co_distributed_values *values);

#endif
