/*
 * mae.c - the mean absolute error, over all values of all samples.
 */
#include <math.h>

#include "metrics/metrics.h"

enum { VALUES, ERRORS, SUMS };

static void mae_accumulate(co_sum *sums, const co_metric_batch *batch)
{
    const size_t n = (size_t)batch->n * batch->form.outputs;

    co_sum_add(&sums[VALUES], (double)n);
    for (size_t i = 0; i < n; i++)
        co_sum_add(&sums[ERRORS], fabs((double)batch->output[i] - (double)batch->target[i]));
}

static double mae_finish(const co_sum *sums, const co_metric_form *form)
{
    const double values = co_sum_value(&sums[VALUES]);

    (void)form;
    return values > 0 ? co_sum_value(&sums[ERRORS]) / values : (double)NAN;
}

const co_metric co_metric_mae = {
    .name = "mae",
    .summary = "mean absolute error of the values; lower is better",
    .targets = CO_METRIC_OF(CO_TARGET_VALUES),
    .lower = true,
    .sums = SUMS,
    .accumulate = mae_accumulate,
    .finish = mae_finish,
};
