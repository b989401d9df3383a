/*
 * label_accuracy.c - of several labels of a sample, the fraction that is right: 1 - the Hamming
 * loss.
 */
#include <math.h>

#include "metrics/metrics.h"

enum { LABELS, RIGHT, SUMS };

static void label_accuracy_accumulate(co_sum *sums, const co_metric_batch *batch)
{
    const size_t n = (size_t)batch->n * batch->form.outputs;
    size_t right = 0;

    for (size_t i = 0; i < n; i++)
        right += co_metric_agrees(batch->output[i], batch->target[i]);
    co_sum_add(&sums[LABELS], (double)n);
    co_sum_add(&sums[RIGHT], (double)right);
}

static double label_accuracy_finish(const co_sum *sums, const co_metric_form *form)
{
    const double labels = co_sum_value(&sums[LABELS]);

    (void)form;
    return labels > 0 ? co_sum_value(&sums[RIGHT]) / labels : (double)NAN;
}

const co_metric co_metric_label_accuracy = {
    .name = "label_accuracy",
    .summary = "labels that are right, of all labels of all samples, as a fraction",
    .targets = CO_METRIC_OF(CO_TARGET_BINARY),
    .sums = SUMS,
    .accumulate = label_accuracy_accumulate,
    .finish = label_accuracy_finish,
};
