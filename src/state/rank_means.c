/* rank_means.c - an epoch's figures per rank, gathered at its end. */
#include "state/rank_means.h"

#include <math.h>

void co_rank_means_add(co_rank_means *means, const co_result *batch)
{
    if (batch->count == 0)
        return;
    means->batches++;
    means->loss_sum += batch->loss_sum / (double)batch->count;
    means->accuracy_sum += (double)batch->correct / (double)batch->count;
}

static double rank_means_ratio(double sum, uint64_t n)
{
    return n ? sum / (double)n : (double)NAN;
}

co_status co_ranks_gather(co_rank_figures *out, co_comm *comm, const co_rank_means *means,
                          const co_result *test)
{
    const co_result none = {0}, *tested = test ? test : &none;
    const co_rank_figures own = {
        .train_loss = rank_means_ratio(means->loss_sum, means->batches),
        .train_accuracy = rank_means_ratio(means->accuracy_sum, means->batches),
        .test_loss = rank_means_ratio(tested->loss_sum, tested->count),
        .test_accuracy = rank_means_ratio((double)tested->correct, tested->count),
    };

    return co_comm_gather(comm, out, &own, sizeof(own) / sizeof(double), CO_F64, 0);
}
