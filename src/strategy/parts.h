/* parts.h - the update of the weights divided among ranks: each updates a slice of them. */
#ifndef CO_STRATEGY_PARTS_H
#define CO_STRATEGY_PARTS_H

#include <cohort/ext/strategy.h>

/* Let this rank update its slice among those of `comm`. */
void co_parts_divide(co_strategy *strategy, co_comm *comm);
/* After an update: each rank's slice of its own weights to all ranks of `divided`. `slice` has room
   for one of them, (co_parts_room) floats. */
co_status co_parts_gather(const co_strategy *strategy, float *slice);
size_t co_parts_room(const co_strategy *strategy);

#endif
