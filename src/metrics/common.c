/*
 * common.c - the figures that every event has: sums of loss and of samples that are right are
 * counted with each step, whatever a config asks for (model/metrics.h).
 */
#include "metrics/metrics.h"

#define COMMON_CLASSES CO_METRIC_OF(CO_TARGET_LABEL)
#define COMMON_LABELS  (CO_METRIC_OF(CO_TARGET_LABEL) | CO_METRIC_OF(CO_TARGET_BINARY))

const co_metric co_metric_loss = {
    .name = "loss",
    .summary = "what is minimized: the mean over samples; measured always; lower is better",
    .targets = COMMON_LABELS | CO_METRIC_OF(CO_TARGET_VALUES) | CO_METRIC_OF(CO_TARGET_NONE),
    .lower = true,
};

const co_metric co_metric_accuracy = {
    .name = "accuracy",
    .summary = "samples whose class, or all of whose labels, are right, as a fraction; always",
    .targets = COMMON_LABELS,
};

const co_metric co_metric_accuracy_top5 = {
    .name = "accuracy_top5",
    .summary = "samples whose class is among the five likeliest; always, with more than 5 classes",
    .targets = COMMON_CLASSES,
};
