/* rank_means.h - an epoch's figures per rank. */
#ifndef CO_STATE_RANK_MEANS_H
#define CO_STATE_RANK_MEANS_H

#include <cohort/train.h>

#include "telemetry/telemetry.h"

/* Means over one rank's batches so far in an epoch; batches count equally, whatever their size. */
typedef struct co_rank_means {
    uint64_t batches; /* batches with samples on this rank */
    double loss_sum, accuracy_sum;
} co_rank_means;

void co_rank_means_add(co_rank_means *means, const co_result *batch);

/* `out` (ranks) is filled on rank 0 and may be NULL elsewhere. `test`: this rank's part of the test
   split; NULL: no evaluation. Collective. */
co_status co_ranks_gather(co_rank_figures *out, co_comm *comm, const co_rank_means *means,
                          const co_result *test);

#endif
