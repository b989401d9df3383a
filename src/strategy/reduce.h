/*
 * reduce.h - sums an array over ranks in buckets, as its ranges become final.
 *
 * Every rank posts the same buckets in the same order; co_reducer_post posts those not announced,
 * so a rank without samples takes part like any other. With shards, a rank's array holds one term
 * after another, and the terms of all ranks are summed in the order of a tree. A sliced reducer
 * gives each rank the sum of its slice of each bucket alone; a divided one that of the buckets in
 * its part of the array.
 */
#ifndef CO_STRATEGY_REDUCE_H
#define CO_STRATEGY_REDUCE_H

#include <cohort/ext/strategy.h>

#include "comm/tree.h"

typedef struct co_reducer_bucket {
    size_t begin, end;
    int owner;                           /* the rank that gets the sum, if it is divided */
    co_request *request;                 /* owned; NULL: not posted */
    const void *part[CO_TREE_MAX_PARTS]; /* with a tree: this rank's parts */
} co_reducer_bucket;

typedef struct co_reducer {
    co_comm *comm;   /* borrowed */
    co_queue *queue; /* borrowed; the store's. NULL: work is done at once */
    float *data;     /* borrowed; reduced in place */
    co_reduce_op op;
    const co_tree *tree; /* borrowed; NULL: plain sum over ranks */
    co_tree_sum sum;     /* with a tree: of this rank's terms except the last */
    size_t n, n_bucket;
    co_reducer_bucket *bucket; /* owned */
    size_t n_posted;           /* buckets posted in this step; of these, */
    size_t n_taken;            /* buckets that are summed and passed on */
    size_t ready;              /* [0, ready) is final */
    bool sliced, divided;
} co_reducer;

/* The config key for the bucket size, a double. 0 is auto: 4 MiB if all ranks share memory, 1 MiB
   over several hosts, where sending the last bucket after backward takes longer. */
extern const char *const co_reducer_auto[];
#define CO_REDUCER_KEY(state, member)                                                              \
    {                                                                                              \
        .name = "bucket_mib", .type = CO_KEY_REAL, .offset = offsetof(state, member),              \
        .fallback = "auto", .min = 1e-4, .max = 4096, .choices = co_reducer_auto,                  \
        .help = "MiB of gradients that are reduced in one piece; auto: 4, over several hosts 1"    \
    }

/* `reducer` must be zeroed; `data` has the length of the store. */
co_status co_reducer_init(co_reducer *reducer, const co_strategy *strategy, float *data,
                          double bucket_mib, co_reduce_op op);
/* The same, sliced: on the host alone. */
co_status co_reducer_init_sliced(co_reducer *reducer, const co_strategy *strategy, float *data,
                                 double bucket_mib, co_reduce_op op);
/* Before its first step, and without a tree: from now on a rank has the sum in its part alone, of
   co_store_slice. No bucket is in two parts. */
co_status co_reducer_divide(co_reducer *reducer, const co_strategy *strategy, double bucket_mib);
/* The slice of bucket i that is a rank's. */
void co_reducer_slice(size_t *begin, size_t *end, const co_reducer *reducer, size_t i, int rank);
/* Between two steps: each rank's slices of an array as long as the store to all. */
co_status co_reducer_gather(co_reducer *reducer, float *array);
/* With a tree: `data` holds a term of this rank other than its last; it can be reused
   afterwards. */
void co_reducer_next_shard(co_reducer *reducer);
/* Called when the sum of [begin, end) is complete. */
typedef co_status (*co_reducer_fn)(void *arg, size_t begin, size_t end);
/* Pass on completed sums bucket by bucket, while they are in a cache. */
co_status co_reducer_take(co_reducer *reducer, co_reducer_fn fn, void *arg);
/* [begin, end) is final: post complete buckets and make progress. */
co_status co_reducer_ready(co_reducer *reducer, size_t begin, size_t end);
/* All is final: post the remaining buckets. */
co_status co_reducer_post(co_reducer *reducer);
/* Wait for all that was posted; `fn` (may be NULL) gets the buckets not yet passed on. */
co_status co_reducer_wait(co_reducer *reducer, co_reducer_fn fn, void *arg);
/* If buckets are in flight, this rank has failed, and the others are notified. */
void co_reducer_fini(co_reducer *reducer);

#endif
