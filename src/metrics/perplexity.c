/*
 * perplexity.c - of sequences: e to the mean cross entropy of a position; between so many equally
 * likely tokens one would be as uncertain.
 */
#include <math.h>

#include "metrics/metrics.h"

static double perplexity_finish(const co_sum *sums, const co_metric_form *form)
{
    (void)form;
    return exp(co_metric_position_loss(sums));
}

const co_metric co_metric_perplexity = {
    .name = "perplexity",
    .summary = "e to the mean loss of a position; of sequences always; lower is better",
    .targets = CO_METRIC_OF(CO_TARGET_LABEL),
    .sequences = true,
    .lower = true,
    .sums = 2,
    .accumulate = co_metric_accumulate_positions,
    .finish = perplexity_finish,
};
