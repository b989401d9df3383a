/*
 * f1.c - F1, 2 tp / (2 tp + fp + fn), of true positives, false positives and false negatives.
 *
 * micro: counted over all classes, or labels, together; of classes it equals the accuracy.
 * macro: of each class, or label, the mean. A class that neither is anybody's nor was predicted has
 * no part in the mean; a label that neither is there nor was predicted has an F1 of 0 (as
 * scikit-learn's f1_score and torchmetrics have it).
 */
#include <math.h>

#include "metrics/metrics.h"

enum { TP, FP, FN, SUMS };

/* Of one label, there or not, and predicted or not. */
static void f1_count(co_sum *sums, bool there, bool predicted)
{
    if (there || predicted)
        co_sum_add(&sums[there && predicted ? TP : there ? FN : FP], 1);
}

/* `step` sums from the counts of one output to those of the next. */
static void f1_accumulate(co_sum *sums, const co_metric_batch *batch, size_t step)
{
    const size_t outputs = batch->form.outputs;
    const float *row = batch->output;

    for (uint64_t i = 0; i < batch->n; i++, row += outputs) {
        if (batch->form.target == CO_TARGET_LABEL) {
            const size_t want = (size_t)batch->label[i], got = co_metric_class(row, outputs);

            if (batch->label[i] < 0)
                continue;
            f1_count(sums + want * step, true, got == want);
            if (got != want && got < outputs)
                f1_count(sums + got * step, false, true);
            continue;
        }
        for (size_t k = 0; k < outputs; k++) {
            const float target = batch->target[i * outputs + k];
            const bool there = target >= 0.5f;

            f1_count(sums + k * step, there, co_metric_agrees(row[k], target) == there);
        }
    }
}

static void f1_micro_accumulate(co_sum *sums, const co_metric_batch *batch)
{
    f1_accumulate(sums, batch, 0);
}

static void f1_macro_accumulate(co_sum *sums, const co_metric_batch *batch)
{
    f1_accumulate(sums, batch, SUMS);
}

/* NaN where there is nothing to count. */
static double f1_value(const co_sum *sums)
{
    const double tp = co_sum_value(&sums[TP]), fp = co_sum_value(&sums[FP]);
    const double all = 2 * tp + fp + co_sum_value(&sums[FN]);

    return all > 0 ? 2 * tp / all : (double)NAN;
}

static double f1_micro_finish(const co_sum *sums, const co_metric_form *form)
{
    (void)form;
    return f1_value(sums);
}

static double f1_macro_finish(const co_sum *sums, const co_metric_form *form)
{
    const bool classes = form->target == CO_TARGET_LABEL;
    double sum = 0, seen = 0;

    for (size_t k = 0; k < form->outputs; k++) {
        const double value = f1_value(sums + k * SUMS);

        if (isnan(value))
            continue;
        seen++;
        sum += value;
    }
    return seen > 0 ? sum / (classes ? seen : (double)form->outputs) : (double)NAN;
}

#define F1_TARGETS (CO_METRIC_OF(CO_TARGET_LABEL) | CO_METRIC_OF(CO_TARGET_BINARY))

const co_metric co_metric_f1_micro = {
    .name = "f1_micro",
    .summary = "F1 of all classes or labels counted together; of classes it is the accuracy",
    .targets = F1_TARGETS,
    .sums = SUMS,
    .accumulate = f1_micro_accumulate,
    .finish = f1_micro_finish,
};

const co_metric co_metric_f1_macro = {
    .name = "f1_macro",
    .summary = "the mean of each class's or label's F1",
    .targets = F1_TARGETS,
    .sums_per_output = SUMS,
    .accumulate = f1_macro_accumulate,
    .finish = f1_macro_finish,
};
