/*
 * r2.c - the coefficient of determination: 1 - sum (y - x)^2 / sum (y - mean y)^2 for outputs x and
 * targets y, of each value of a sample; the mean over these (as scikit-learn has it). Of targets
 * that are all the same it is 1 where every output is right, else 0.
 */
#include <math.h>

#include "metrics/metrics.h"

enum { SUM, SQUARES, ERRORS, PER_OUTPUT };

/* Below this part of sum y^2 what is left of it is rounding. */
#define R2_NOTHING 0x1p-80

static void r2_accumulate(co_sum *sums, const co_metric_batch *batch)
{
    const float *x = batch->output, *y = batch->target;

    co_sum_add(&sums[0], (double)batch->n);
    for (uint64_t i = 0; i < batch->n; i++)
        for (size_t k = 0; k < batch->form.outputs; k++, x++, y++) {
            co_sum *of = sums + 1 + k * PER_OUTPUT;
            const double target = (double)*y, error = (double)*x - target;

            co_sum_add(&of[SUM], target);
            co_sum_add(&of[SQUARES], target * target);
            co_sum_add(&of[ERRORS], error * error);
        }
}

static void r2_add_product(co_sum *sum, double a, double b)
{
    const double product = a * b;

    co_sum_add(sum, product);
    co_sum_add(sum, fma(a, b, -product));
}

/* sum (y - mean)^2 = sum y^2 - mean (2 sum y - n mean): a small difference of large numbers, in
   twice the digits. */
static double r2_total(const co_sum *of, double n)
{
    const double mean = co_sum_value(&of[SUM]) / n, twice = n * mean;
    co_sum total = of[SQUARES];

    r2_add_product(&total, -2 * mean, of[SUM].high);
    r2_add_product(&total, -2 * mean, of[SUM].low);
    r2_add_product(&total, mean, twice);
    r2_add_product(&total, mean, fma(n, mean, -twice));
    return co_sum_value(&total);
}

static double r2_finish(const co_sum *sums, const co_metric_form *form)
{
    const double n = co_sum_value(&sums[0]);
    double sum = 0;

    if (n < 2)
        return (double)NAN;
    for (size_t k = 0; k < form->outputs; k++) {
        const co_sum *of = sums + 1 + k * PER_OUTPUT;
        const double errors = co_sum_value(&of[ERRORS]), total = r2_total(of, n);

        if (total > R2_NOTHING * co_sum_value(&of[SQUARES]))
            sum += 1 - errors / total;
        else
            sum += isnan(errors) ? errors : errors == 0;
    }
    return sum / (double)form->outputs;
}

const co_metric co_metric_r2 = {
    .name = "r2",
    .summary = "R2: the part of the targets' variance that the outputs explain, at most 1",
    .targets = CO_METRIC_OF(CO_TARGET_VALUES),
    .sums = 1,
    .sums_per_output = PER_OUTPUT,
    .accumulate = r2_accumulate,
    .finish = r2_finish,
};
