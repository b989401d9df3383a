/*
 * measures.h - the metrics that a config asks for, over all samples of an epoch or an evaluation:
 * the sums of each forward are added up, over shards and ranks in their order.
 */
#ifndef CO_TRAIN_MEASURES_H
#define CO_TRAIN_MEASURES_H

#include "comm/tree.h"
#include "model/model.h"

/* All borrowed but the arrays. */
typedef struct co_measures {
    const co_metric_set *set;
    co_comm *comm;
    int shards;   /* 0: sums are this rank's own */
    co_sum *sum;  /* owned, (n_sum): so far, of this rank; with shards of all, on rank 0 alone */
    co_sum *slot; /* owned, (shards or ranks, n_sum): what is under way */
} co_measures;

/* `tree`: with shards; NULL: without. */
co_status co_measures_open(co_measures *out, const co_metric_set *set, co_comm *comm,
                           const co_tree *tree);
void co_measures_close(co_measures *measures);
/* What the model's last forward has left, of shard `shard` (0 where there are none). */
void co_measures_take(co_measures *measures, const co_model *model, int shard);
/* With shards: what all ranks have taken since the last call is added up on rank 0, shard by shard.
   Collective. */
co_status co_measures_join(co_measures *measures);
/* The value of each metric over all ranks, (CO_METRICS_MAX), on every rank. Collective. */
co_status co_measures_finish(double *value, co_measures *measures);
/* The same by name for a program; returns their number. */
size_t co_measures_name(co_metric_value *out, const co_metric_set *set, const double *value);
/* `sum` to and from a state, (CO_METRICS_MAX_SUMS). */
void co_measures_save(co_sum *out, const co_measures *measures);
void co_measures_restore(co_measures *measures, const co_sum *from);
/* From the start. */
void co_measures_clear(co_measures *measures);

#endif
