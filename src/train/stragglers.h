/* stragglers.h - which rank keeps the others waiting. */
#ifndef CO_TRAIN_STRAGGLERS_H
#define CO_TRAIN_STRAGGLERS_H

#include <cohort/comm.h>

#include "telemetry/telemetry.h"

#define CO_MAX_STRAGGLERS 8

typedef struct co_stragglers {
    int n;
    co_straggler rank[CO_MAX_STRAGGLERS];
} co_stragglers;

/* Time that a rank spent in `steps` steps: total, and waiting for other ranks. */
typedef struct co_rank_work {
    uint64_t steps;
    double seconds, waited_seconds;
} co_rank_work;

/* Find ranks that compute for more than 1.2 times as long as the median of the others between two
   synchronizations. Collective; only rank 0 gets a result. */
co_status co_stragglers_find(co_stragglers *out, co_comm *comm, const co_rank_work *work);
/* Write the message into `out` and return it. */
const char *co_straggler_message(char *out, size_t size, const co_straggler *straggler);

#endif
