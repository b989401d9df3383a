/* positions.c - shared by metrics of sequences: the loss of all positions that have a label. */
#include <math.h>

#include "metrics/metrics.h"

enum { POSITIONS_LOSS, POSITIONS_COUNT };

void co_metric_accumulate_positions(co_sum *sums, const co_metric_batch *batch)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < batch->n; i++)
        n += batch->label[i] >= 0;
    co_sum_add(&sums[POSITIONS_LOSS], co_metric_sum_loss(batch));
    co_sum_add(&sums[POSITIONS_COUNT], (double)n);
}

double co_metric_position_loss(const co_sum *sums)
{
    const double n = co_sum_value(&sums[POSITIONS_COUNT]);

    return n > 0 ? co_sum_value(&sums[POSITIONS_LOSS]) / n : (double)NAN;
}
