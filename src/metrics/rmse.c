/*
 * rmse.c - the root of the mean squared error, over all values of all samples.
 */
#include <math.h>

#include "metrics/metrics.h"

enum { VALUES, SQUARES, SUMS };

static void rmse_accumulate(co_sum *sums, const co_metric_batch *batch)
{
    const size_t n = (size_t)batch->n * batch->form.outputs;

    co_sum_add(&sums[VALUES], (double)n);
    for (size_t i = 0; i < n; i++) {
        const double error = (double)batch->output[i] - (double)batch->target[i];

        co_sum_add(&sums[SQUARES], error * error);
    }
}

static double rmse_finish(const co_sum *sums, const co_metric_form *form)
{
    const double values = co_sum_value(&sums[VALUES]);

    (void)form;
    return values > 0 ? sqrt(co_sum_value(&sums[SQUARES]) / values) : (double)NAN;
}

const co_metric co_metric_rmse = {
    .name = "rmse",
    .summary = "root of the mean squared error of the values; lower is better",
    .targets = CO_METRIC_OF(CO_TARGET_VALUES),
    .lower = true,
    .sums = SUMS,
    .accumulate = rmse_accumulate,
    .finish = rmse_finish,
};
