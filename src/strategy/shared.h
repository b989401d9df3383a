/* shared.h - weights in memory that all ranks read and write. */
#ifndef CO_STRATEGY_SHARED_H
#define CO_STRATEGY_SHARED_H

#include <cohort/ext/strategy.h>

/* Put rank 0's weights into memory that the ranks of `local` share and lend it to each rank's
   store; each rank gets a copy of rank 0's running statistics. Collective over all ranks. */
co_status co_shared_open(float **weights, const co_strategy *strategy, co_comm *local);
/* Copy the weights back into the store's own memory. `weights` may be NULL. */
void co_shared_close(const co_strategy *strategy, co_comm *local, float *weights);

#endif
