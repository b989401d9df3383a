/*
 * shards.h - a step with `shards: V`, apart from the gradient: running statistics and figures of
 * every shard, summed in the order of the tree.
 */
#ifndef CO_STEP_SHARDS_H
#define CO_STEP_SHARDS_H

#include <cohort/train.h>

#include "comm/tree.h"
#include "tensor/store.h"

/* One array of each shard, summed over all of them. */
typedef struct co_shards_sum {
    float *term; /* (n) owned: a shard's term; later the sum of all */
    size_t n;
    co_tree_sum sum;
    const void *part[CO_TREE_MAX_PARTS];
    co_request *request; /* owned */
} co_shards_sum;

typedef struct co_shards {
    const co_tree *tree; /* borrowed; NULL: no shards, nothing to do */
    co_comm *comm;       /* borrowed */
    co_store *store;     /* borrowed */
    int first, n;        /* this rank's shards */
    float *start;        /* (n_buffer) owned: running statistics before the step */
    co_shards_sum main;  /* statistics, and on the host figures after them */
    co_shards_sum late;  /* with a device: figures, on the host, when they have been read */
} co_shards;

/* `shards` must be zeroed. co_shards_close frees what exists, also after a failure. */
co_status co_shards_open(co_shards *shards, const co_tree *tree, co_comm *comm, co_store *store);
void co_shards_close(co_shards *shards);
/* Call before the first shard of a step. */
void co_shards_start(co_shards *shards);
/* Call when all samples of a shard have gone forward: adds its share, of the samples of the step,
   of the new running statistics, and its figures (on the host), and restores the statistics from
   before the step. `last` of this rank: starts the sum over all shards. */
co_status co_shards_forward_done(co_shards *shards, const co_result *figures, double share,
                                 bool last);
/* Store the new running statistics and, on the host, the figures of the whole batch in `out`. */
co_status co_shards_finish(co_result *out, co_shards *shards);
/* With a device, when the results of a step are read: (n) figures of this rank's shards. Those of
   the whole batch are in `out` then. */
co_status co_shards_take_late(co_result *out, co_shards *shards, const co_result *figures);

#endif
