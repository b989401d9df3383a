/* metrics.h - loss and accuracy: counted per rank, summed over ranks. */
#ifndef CO_MODEL_METRICS_H
#define CO_MODEL_METRICS_H

#include <cohort/ext/metric.h>
#include <cohort/train.h>

/* Count one batch of samples, or positions. One is top-k correct if fewer than k classes have a
   higher logit, where ties go to the lower class; never if its label's logit is NaN. With binary
   targets, a sample is correct if every logit is above 0 exactly where its target is at least 0.5.
   Without either nothing is correct. */
void co_metrics_count(co_result *out, const co_metric_batch *batch);
/* The same where `place` (n) has the place of each label among the logits (co_plan_places), which
   are not needed. */
void co_metrics_count_places(co_result *out, const co_metric_batch *batch, const int32_t *place);
/* Add 1 to confusion[label][predicted class], (classes, classes), for each; ties as above. Those
   whose logits are all NaN are not counted. */
void co_metrics_confuse(int64_t *confusion, const co_metric_batch *batch);
void co_metrics_add(co_result *sum, const co_result *part);
/* Sum over all ranks, on every rank. Collective. */
co_status co_metrics_reduce(co_result *inout, co_comm *comm);

/* Sum the results of `n` shards, each set on one rank and zero on the others, in shard order: the
   same bits on any number of ranks. */
co_status co_metrics_reduce_shards(co_result *out, const co_result *shard, int n, co_comm *comm);

#endif
