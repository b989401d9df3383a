/*
 * weights.h - the weights and running statistics of all ranks made one: those of rank 0, or their
 * mean weighted by the samples that each was trained on.
 */
#ifndef CO_STRATEGY_WEIGHTS_H
#define CO_STRATEGY_WEIGHTS_H

#include <cohort/ext/strategy.h>

/* Samples used since all ranks last had the same weights. */
typedef struct co_weights_used {
    uint64_t count[2]; /* of this rank, of all */
} co_weights_used;

/* Those of rank 0 on every rank. */
co_status co_weights_broadcast(const co_strategy *strategy);
/* The counters of co_strategy_ops. */
uint64_t *co_weights_counters(co_weights_used *used, size_t *n);
/* Before the update of a step on a rank's own samples: none, no update. */
void co_weights_allow(co_strategy *strategy, const co_strategy_step *step);
/* After the update of such a step. */
void co_weights_count(co_weights_used *used, const co_strategy_step *step);
/* This rank's share in that sum; 0: nothing is used. */
double co_weights_share(const co_weights_used *used);
/* Sum over ranks of local / global times theirs; `used` begins anew. Nothing is used: nothing is
   done. */
co_status co_weights_average(co_weights_used *used, const co_strategy *strategy);

#endif
