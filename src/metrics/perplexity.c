/*
 * perplexity.c - of sequences: e to the mean cross entropy of a position; between so many equally
 * likely tokens one would be as uncertain.
 */
#include <math.h>

#include "metrics/metrics.h"

enum { LOSS, POSITIONS, SUMS };

static void perplexity_accumulate(co_sum *sums, const co_metric_batch *batch)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < batch->n; i++)
        n += batch->label[i] >= 0;
    co_sum_add(&sums[LOSS], co_metric_sum_loss(batch));
    co_sum_add(&sums[POSITIONS], (double)n);
}

static double perplexity_finish(const co_sum *sums, const co_metric_form *form)
{
    const double n = co_sum_value(&sums[POSITIONS]);

    (void)form;
    return n > 0 ? exp(co_sum_value(&sums[LOSS]) / n) : (double)NAN;
}

const co_metric co_metric_perplexity = {
    .name = "perplexity",
    .summary = "e to the mean loss of a position; of sequences always; lower is better",
    .targets = CO_METRIC_OF(CO_TARGET_LABEL),
    .sequences = true,
    .lower = true,
    .sums = SUMS,
    .accumulate = perplexity_accumulate,
    .finish = perplexity_finish,
};
