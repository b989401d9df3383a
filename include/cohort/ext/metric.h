/*
 * ext/metric.h - what is counted of samples that have gone forward, and what the author of a device
 * fills in to count it there.
 *
 * Figures of a step are read a step later from a device. Where the device counts, a few numbers go
 * to the host; else it copies all outputs there, and the host counts.
 */
#ifndef COHORT_EXT_METRIC_H
#define COHORT_EXT_METRIC_H

#include <cohort/ext/device.h>
#include <cohort/ext/op.h>
#include <cohort/ext/sum.h>

#ifdef __cplusplus
extern "C" {
#endif

struct co_result;

/** What a network's outputs are compared with: its loss says it. */
typedef struct co_metric_form {
    co_target target;
    size_t outputs;         /* of a sample, or a position: logits, or values */
    size_t positions;       /* of a sample, if it is a sequence with a label for each; else 0 */
    double bytes_per_token; /* of the text that its tokens are of; 0: not known */
} co_metric_form;

/** `n` samples, or positions of them, that have gone forward; all borrowed. */
typedef struct co_metric_batch {
    co_metric_form form;
    uint64_t n;
    const float *output;  /* (n, outputs) */
    const float *target;  /* (n, outputs), of VALUES and BINARY; else NULL */
    const int32_t *label; /* (n), each below `outputs`, of LABEL; else NULL. Positions with -1 are
                             not counted */
    const float *loss;    /* of each sample; of a sequence the sum over its positions, divided by
                             their number */
} co_metric_batch;

/** The sum of `loss` over samples, or positions. */
static inline double co_metric_sum_loss(const co_metric_batch *batch)
{
    const uint64_t each = batch->form.positions ? batch->form.positions : 1;
    double sum = 0;

    for (uint64_t i = 0; i < batch->n / each; i++)
        sum += (double)batch->loss[i];
    return sum * (double)each;
}

/** A metric that a device can add up, by the name that it has in a config. */
typedef struct co_device_metric {
    const char *name;
    /** Add the batch to `sums`, as the metric of that name does on the host. All pointers, but that
     *  to `batch`, which is copied, lead to the device's memory; the work is put on `queue`. */
    void (*accumulate)(co_queue *queue, co_sum *sums, const co_metric_batch *batch);
} co_device_metric;

typedef struct co_device_metrics {
    /** What every event has: number of samples or positions, sum of the loss, how many are right.
     */
    void (*count)(co_queue *queue, struct co_result *out, const co_metric_batch *batch);
    /** Others, ended by a NULL name; what is not here the host counts. */
    const co_device_metric *metric;
} co_device_metrics;

#ifdef __cplusplus
}
#endif
#endif
