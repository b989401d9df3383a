/*
 * weights.h - makes weights and running statistics equal on all ranks: rank 0's, or the mean
 * weighted by the samples that each rank was trained on.
 */
#ifndef CO_STRATEGY_WEIGHTS_H
#define CO_STRATEGY_WEIGHTS_H

#include <cohort/ext/strategy.h>

/* Samples used since the ranks last had equal weights. */
typedef struct co_weights_used {
    uint64_t count[2]; /* of this rank, of all ranks */
} co_weights_used;

/* Broadcast rank 0's. */
co_status co_weights_broadcast(const co_strategy *strategy);
/* The counters for co_strategy_ops. */
uint64_t *co_weights_counters(co_weights_used *used, size_t *n);
/* Call before the update of a local step: a rank without samples updates nothing. */
void co_weights_allow(co_strategy *strategy, const co_strategy_step *step);
/* Call after the update of such a step. */
void co_weights_count(co_weights_used *used, const co_strategy_step *step);
/* This rank's share of the samples; 0 if none were used. */
double co_weights_share(const co_weights_used *used);
/* Weighted mean over ranks; resets `used`. Does nothing if no samples were used. */
co_status co_weights_average(co_weights_used *used, const co_strategy *strategy);

#endif
