/* strategy.h - the registry of strategies; creating them and calling their hooks. */
#ifndef CO_STRATEGY_STRATEGY_H
#define CO_STRATEGY_STRATEGY_H

#include <cohort/ext/strategy.h>

#include "core/plugin.h"
#include "tensor/store.h"

#define CO_STRATEGY_DEFAULT "sync" /* if the config names none */

extern const co_strategy_ops *const co_strategies[]; /* NULL-ended */
extern const co_plugins co_strategy_plugins;
extern const co_strategy_ops co_strategy_sync;
extern const co_strategy_ops co_strategy_local;
extern const co_strategy_ops co_strategy_one_shot;
extern const co_strategy_ops co_strategy_stale;
extern const co_strategy_ops co_strategy_hogwild, co_strategy_threads, co_strategy_ssp;

/* Create from the config value (a name or {name, keys}); NULL: sync. `tree`: NULL without
   shards. */
co_status co_strategy_create(co_strategy **out, const co_value *value, co_config *config,
                             co_comm *comm, co_store *store, const co_tree *tree);
void co_strategy_destroy(co_strategy *strategy);

/* The hooks; a NULL hook does nothing. */
bool co_strategy_replicas_in_sync(const co_strategy *strategy);
bool co_strategy_synchronizes(const co_strategy *strategy, uint64_t step);
bool co_strategy_is_local(const co_strategy *strategy, uint64_t step);
co_status co_strategy_start(co_strategy *strategy);
co_status co_strategy_grad_ready(co_strategy *strategy, size_t begin, size_t end);
co_status co_strategy_shard_ready(co_strategy *strategy);
co_status co_strategy_before_update(co_strategy *strategy, const co_strategy_step *step);
co_status co_strategy_after_update(co_strategy *strategy, const co_strategy_step *step);
co_status co_strategy_finish(co_strategy *strategy);
co_status co_strategy_quiesce(co_strategy *strategy);
float *co_strategy_persistent(const co_strategy *strategy, size_t i);
/* Only if ops->rescale is set, or nothing is kept between steps. */
void co_strategy_rescale(co_strategy *strategy, double factor);
bool co_strategy_is_partial_sum(const co_strategy *strategy, size_t i);
co_strategy_merge co_strategy_merge_of(const co_strategy *strategy);
uint64_t *co_strategy_counters(const co_strategy *strategy, size_t *n);
co_status co_strategy_resume(co_strategy *strategy, uint64_t step);
co_strategy_counts co_strategy_report(const co_strategy *strategy);

/* Part i of the store that a rank of `divided` updates (that nobody divides: that this rank does);
   false: there are no more. */
bool co_strategy_part(size_t *begin, size_t *end, const co_strategy *strategy, int rank, size_t i);
/* The same, of this rank. */
bool co_strategy_own_part(size_t *begin, size_t *end, const co_strategy *strategy, size_t i);

#endif
