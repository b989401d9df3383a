/* shard_ahead.h - threads that fetch blocks of shards before they are needed. What they do not get
   is left to whoever needs it. */
#ifndef CO_DATA_SHARD_AHEAD_H
#define CO_DATA_SHARD_AHEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cohort/status.h>

typedef struct co_shard_ahead co_shard_ahead;

/* Blocks [first, end) of a shard. */
typedef struct co_shard_run {
    uint32_t shard;
    uint64_t first, end;
} co_shard_run;

typedef struct co_shard_ahead_options {
    int threads;
    uint64_t blocks; /* of all shards */
    /* Called by the threads. Ends soon after *cancel is true. False: it failed, and the thread
       pauses before it fetches more. */
    bool (*fetch)(void *arg, const co_shard_run *run, const atomic_bool *cancel);
    void *arg;
} co_shard_ahead_options;

co_status co_shard_ahead_create(co_shard_ahead **out, const co_shard_ahead_options *options);
/* One block to be fetched after those before it; `number`: of it among all. One that has been asked
   for is not fetched twice, and one too many is left out. The first one starts the threads, also
   in a process that was forked since. Thread-safe. */
void co_shard_ahead_add(co_shard_ahead *ahead, uint64_t number, uint32_t shard, uint64_t block);
/* Forget what is still to be fetched, and end the threads: when it returns nothing is being
   fetched, whichever thread has called it first. */
void co_shard_ahead_stop(co_shard_ahead *ahead);
void co_shard_ahead_destroy(co_shard_ahead *ahead);

#endif
