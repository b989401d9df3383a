/*
 * reduce.h - an array summed over ranks in buckets, as its parts become final.
 *
 * Every rank posts the same buckets in the same order; co_reducer_post posts those that were not
 * announced, so a rank without samples takes part like any other. With shards a rank's array is one
 * term after another, and the sum over the terms of all ranks is taken in the order of a tree.
 */
#ifndef CO_STRATEGY_REDUCE_H
#define CO_STRATEGY_REDUCE_H

#include <cohort/ext/strategy.h>

#include "comm/tree.h"

typedef struct co_reducer_bucket {
    size_t begin, end;
    co_request *request;                 /* owned; NULL: not posted */
    const void *part[CO_TREE_MAX_PARTS]; /* with a tree: this rank's parts */
} co_reducer_bucket;

typedef struct co_reducer {
    co_comm *comm;   /* borrowed */
    co_queue *queue; /* borrowed; that of the store. NULL: all is done at once */
    float *data;     /* borrowed; reduced in place */
    co_reduce_op op;
    const co_tree *tree; /* borrowed; NULL: sums are over ranks */
    co_tree_sum sum;     /* of this rank's terms but the last, with a tree */
    size_t n, n_bucket;
    co_reducer_bucket *bucket; /* owned */
    size_t n_posted;           /* buckets of this step that were posted; of them, */
    size_t n_taken;            /* buckets that are summed and passed on */
    size_t ready;              /* [0, ready) is final */
} co_reducer;

/* The config key of the buckets' size, a double; 0 is auto: 4 MiB where all ranks share memory, 1
   MiB over several hosts, where what is left to send when backward is over takes longer. */
extern const char *const co_reducer_auto[];
#define CO_REDUCER_KEY(state, member)                                                              \
    {                                                                                              \
        .name = "bucket_mib", .type = CO_KEY_REAL, .offset = offsetof(state, member),              \
        .fallback = "auto", .min = 1e-4, .max = 4096, .choices = co_reducer_auto,                  \
        .help = "MiB of gradients that are reduced in one piece; auto: 4, over several hosts 1"    \
    }

/* `reducer` is all zero; `data` has the length of the store. */
co_status co_reducer_init(co_reducer *reducer, const co_strategy *strategy, float *data,
                          double bucket_mib, co_reduce_op op);
/* With a tree: `data` holds a term of this rank that is not its last, and is free afterwards. */
void co_reducer_next_shard(co_reducer *reducer);
/* The sum of [begin, end) is complete. */
typedef co_status (*co_reducer_fn)(void *arg, size_t begin, size_t end);
/* Pass on what is summed so far, bucket by bucket, while it is in a cache. */
co_status co_reducer_take(co_reducer *reducer, co_reducer_fn fn, void *arg);
/* [begin, end) is final: post the buckets that are complete, let those in flight advance. */
co_status co_reducer_ready(co_reducer *reducer, size_t begin, size_t end);
/* All is final: post what is not posted yet. */
co_status co_reducer_post(co_reducer *reducer);
/* Wait for all that was posted; `fn` (NULL: nothing) gets what was not taken. */
co_status co_reducer_wait(co_reducer *reducer, co_reducer_fn fn, void *arg);
/* With buckets in flight this rank has failed: then it notifies the others. */
void co_reducer_fini(co_reducer *reducer);

#endif
