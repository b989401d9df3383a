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

/* A rank's time in steps, by `steps` of them: in all, and waiting for other ranks. */
typedef struct co_rank_work {
    uint64_t steps;
    double seconds, waited_seconds;
} co_rank_work;

/* Ranks that work for more than 1.2 times as long as the median of the others, between the
   moments at which all meet. Collective; on rank 0 alone there is a result. */
co_status co_stragglers_find(co_stragglers *out, co_comm *comm, const co_rank_work *own);
/* The message; returns `out`. */
const char *co_straggler_message(char *out, size_t size, const co_straggler *straggler);

#endif
