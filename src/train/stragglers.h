/* stragglers.h - which rank keeps the others waiting. */
#ifndef CO_TRAIN_STRAGGLERS_H
#define CO_TRAIN_STRAGGLERS_H

#include <cohort/status.h>

struct trainer;

/* After the last step, into t->straggler: ranks that work for more than 1.2 times as long as
   the median of the others, between the moments at which all meet. Collective; on rank 0 alone. */
co_status co_lateness_find(struct trainer *t);

#endif
