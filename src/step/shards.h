/*
 * shards.h - the part of a step with `shards: V` besides the gradient: running statistics and
 * figures of every shard, summed in the order of the tree.
 */
#ifndef CO_STEP_SHARDS_H
#define CO_STEP_SHARDS_H

#include <cohort/train.h>

#include "comm/tree.h"
#include "tensor/store.h"

typedef struct co_shards {
    const co_tree *tree; /* borrowed; NULL: no shards, and nothing below */
    co_comm *comm;       /* borrowed */
    co_store *store;     /* borrowed */
    int first, n;        /* this rank's */
    float *start;        /* (n_buffer) owned: running statistics before the step */
    float *term;         /* (n_buffer + 3) owned: what a shard adds, in the end the sum of all */
    co_tree_sum sum;
    const void *part[CO_TREE_MAX_PARTS];
    co_request *request; /* owned */
} co_shards;

/* `shards` is all zero; after a failure too, co_shards_close frees what there is. */
co_status co_shards_open(co_shards *shards, const co_tree *tree, co_comm *comm, co_store *store);
void co_shards_close(co_shards *shards);
/* Before the first shard of a step. */
void co_shards_start(co_shards *shards);
/* Every sample of a shard has gone forward: its share of the new running statistics, and its
   figures. The next shard begins with the statistics from before the step. `last` of this rank:
   the sum over all shards is sent. */
co_status co_shards_forward_done(co_shards *shards, const co_result *figures, uint64_t global,
                                 bool last);
/* The new running statistics into the store, the figures of the whole batch into `out`. */
co_status co_shards_finish(co_result *out, co_shards *shards);

#endif
