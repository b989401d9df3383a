/*
 * measures.h - the config's metrics over all samples of an epoch or an evaluation.
 *
 * The sums of each forward pass are added up over shards and ranks in a fixed order.
 */
#ifndef CO_TRAIN_MEASURES_H
#define CO_TRAIN_MEASURES_H

#include "comm/tree.h"
#include "model/model.h"

/* Everything but the arrays is borrowed. */
typedef struct co_measures {
    const co_metric_set *set;
    co_metric_form form; /* of the network on the split */
    co_comm *comm;
    int shards;   /* 0: no shards; `sum` is this rank's own */
    co_sum *sum;  /* owned, (n_sum): this rank's running sums; with shards those of all ranks, on
                     rank 0 only */
    co_sum *slot; /* owned, (shards or ranks, n_sum): scratch for the reduction */
} co_measures;

/* `tree`: NULL without shards. */
co_status co_measures_open(co_measures *out, const co_metric_set *set, co_comm *comm,
                           const co_tree *tree);
void co_measures_close(co_measures *measures);
/* Add the sums of the model's last forward, which was of shard `shard` (0 without shards). */
void co_measures_take(co_measures *measures, const co_model *model, int shard);
/* With shards: reduce what all ranks have taken since the last call to rank 0, in shard order.
   Collective. */
co_status co_measures_join(co_measures *measures);
/* Compute each metric over all ranks, (CO_METRICS_MAX), on every rank. Collective. */
co_status co_measures_finish(double *value, co_measures *measures);
/* The same values with their names; returns how many. */
size_t co_measures_name(co_metric_value *out, const co_metric_set *set, const double *value);
/* Copy `sum` to and from a checkpoint state, (CO_METRICS_MAX_SUMS). */
void co_measures_save(co_sum *out, const co_measures *measures);
void co_measures_restore(co_measures *measures, const co_sum *from);
/* Reset the sums to zero. */
void co_measures_clear(co_measures *measures);

#endif
