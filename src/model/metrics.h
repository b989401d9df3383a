/* metrics.h - loss and accuracy: counted per rank, summed over ranks. */
#ifndef CO_MODEL_METRICS_H
#define CO_MODEL_METRICS_H

#include <cohort/train.h>

/* Count one batch: logits (n, classes), loss (n), label (n). A sample is right (top-k) when
   fewer than k classes have a higher one, ties to the lower class; never when its logit is NaN.
   Without labels (NULL) none is. */
void co_metrics_count(co_result *out, const float *score, const float *loss, const int32_t *label,
                      uint64_t n, size_t classes);
/* The same for labels that are there or not, logits and targets (n, outputs): a sample is right
   when every logit is above 0 where the target is at least 0.5, and there alone. */
void co_metrics_count_binary(co_result *out, const float *logit, const float *loss,
                             const float *target, uint64_t n, size_t outputs);
/* Add 1 to confusion[label][predicted class], (classes, classes), for each sample; ties
   as above. A sample whose logits are all NaN counts nowhere. */
void co_metrics_confuse(int64_t *confusion, const float *score, const int32_t *label, uint64_t n,
                        size_t classes);
void co_metrics_add(co_result *sum, const co_result *part);
/* Sums over all ranks, on every rank. Collective. */
co_status co_metrics_reduce(co_result *inout, co_comm *comm);

/* The figures of `n` shards, each known to one rank and zero on the others, added up in their order
   on all: the same bits for any number of ranks. */
co_status co_metrics_reduce_shards(co_result *out, const co_result *shard, int n, co_comm *comm);

#endif
