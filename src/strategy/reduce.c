/*
 * reduce.c - bucketed all-reduce that overlaps with the backward pass (Li et al., "PyTorch
 * Distributed", VLDB 2020). Does not know what is summed, or what the sum is used for.
 */
#include "strategy/reduce.h"

#include "comm/queued.h"
#include "core/mem.h"
#include "strategy/bucket.h"
#include "tensor/store.h"

#define REDUCE_MIB        4
#define REDUCE_ACROSS_MIB 1

const char *const co_reducer_auto[] = {"auto", NULL};

static double reduce_mib(const co_strategy *strategy, double wanted)
{
    if (wanted > 0)
        return wanted;
    return co_comm_local(strategy->comm) == strategy->comm ? REDUCE_MIB : REDUCE_ACROSS_MIB;
}

/* Even the first and the last bucket, which are a quarter, have slices of one length. */
static size_t reduce_full(const co_reducer *reducer, double mib)
{
    const size_t full = co_bucket_elements(mib), ranks = (size_t)co_comm_size(reducer->comm),
                 unit = reducer->sliced ? 4 * ranks * CO_SLICE_UNIT : 1;

    return (full + unit - 1) / unit * unit;
}

/* The end of the bucket from `begin` on; in the part of *owner, which is that before it or a later
   one. */
static size_t reduce_end(int *owner, const co_reducer *reducer, size_t begin, size_t full)
{
    const int ranks = co_comm_size(reducer->comm);
    const size_t end = co_bucket_end(begin, reducer->n, full);
    size_t part;

    if (!reducer->divided)
        return end;
    while ((part = co_store_slice(reducer->n, *owner + 1, ranks)) <= begin)
        ++*owner;
    return end < part ? end : part;
}

/* Returns the number of buckets; `bucket` NULL: that alone. */
static size_t reduce_cut(co_reducer_bucket *bucket, const co_reducer *reducer, size_t full)
{
    size_t count = 0;
    int owner = 0;

    for (size_t begin = 0, end; begin < reducer->n; begin = end, count++) {
        end = reduce_end(&owner, reducer, begin, full);
        if (bucket)
            bucket[count] = (co_reducer_bucket){.begin = begin, .end = end, .owner = owner};
    }
    return count;
}

static co_status reduce_open(co_reducer *reducer, const co_strategy *strategy, double bucket_mib)
{
    const size_t n = reducer->n, full = reduce_full(reducer, reduce_mib(strategy, bucket_mib));

    reducer->bucket = co_calloc(reduce_cut(NULL, reducer, full), sizeof(*reducer->bucket));
    if (!reducer->bucket)
        return CO_E_NOMEM;
    reducer->n_bucket = reduce_cut(reducer->bucket, reducer, full);
    return reducer->tree
               ? co_tree_sum_init(&reducer->sum, reducer->tree, co_comm_rank(reducer->comm), n,
                                  strategy->store->vector, strategy->store->queue)
               : CO_OK;
}

static co_reducer reduce_of(const co_strategy *strategy, float *data, co_reduce_op op, bool sliced)
{
    return (co_reducer){.comm = strategy->comm,
                        .queue = strategy->store->queue,
                        .data = data,
                        .op = op,
                        .tree = strategy->tree,
                        .n = strategy->store->n,
                        .sliced = sliced};
}

co_status co_reducer_init(co_reducer *reducer, const co_strategy *strategy, float *data,
                          double bucket_mib, co_reduce_op op)
{
    *reducer = reduce_of(strategy, data, op, false);
    return reduce_open(reducer, strategy, bucket_mib);
}

co_status co_reducer_init_sliced(co_reducer *reducer, const co_strategy *strategy, float *data,
                                 double bucket_mib, co_reduce_op op)
{
    *reducer = reduce_of(strategy, data, op, true);
    return reduce_open(reducer, strategy, bucket_mib);
}

co_status co_reducer_divide(co_reducer *reducer, const co_strategy *strategy, double bucket_mib)
{
    co_free(reducer->bucket);
    reducer->bucket = NULL;
    reducer->n_bucket = 0;
    reducer->divided = true;
    return reduce_open(reducer, strategy, bucket_mib);
}

void co_reducer_slice(size_t *begin, size_t *end, const co_reducer *reducer, size_t i, int rank)
{
    const co_reducer_bucket *bucket = &reducer->bucket[i];
    const size_t n = bucket->end - bucket->begin;
    const size_t own = co_comm_slice(begin, n, co_comm_slice_each(reducer->comm, n),
                                     co_comm_slice_index(reducer->comm, rank));

    *begin += bucket->begin;
    *end = *begin + own;
}

void co_reducer_next_shard(co_reducer *reducer)
{
    co_tree_sum_push(&reducer->sum, reducer->data);
}

static co_status reduce_bucket(co_reducer *reducer, co_reducer_bucket *bucket)
{
    float *data = reducer->data + bucket->begin;
    co_coll_args args = {.coll = CO_COLL_ALLREDUCE,
                         .in = data,
                         .out = data,
                         .count = bucket->end - bucket->begin,
                         .dtype = CO_F32,
                         .op = reducer->op,
                         .queue = reducer->queue};

    if (reducer->divided) {
        args.coll = CO_COLL_REDUCE;
        args.peer = bucket->owner;
    }
    if (reducer->sliced) {
        args.coll = CO_COLL_REDUCE_SLICES;
        args.each = co_comm_slice_each(reducer->comm, args.count);
    }
    if (reducer->tree) {
        (void)co_tree_sum_parts(bucket->part, &reducer->sum, reducer->data, bucket->begin);
        args.coll = reducer->sliced ? CO_COLL_TREE_SLICES : CO_COLL_TREE;
        args.in = (const void *)bucket->part;
        args.op = CO_SUM;
        args.tree = reducer->tree;
    }
    return co_comm_enqueue(&bucket->request, reducer->comm, &args);
}

/* [0, end) is final: add the new range to the sum of this rank's earlier terms. */
static void reduce_advance(co_reducer *reducer, size_t end)
{
    if (reducer->tree)
        co_tree_sum_close(&reducer->sum, reducer->data, reducer->ready, end);
    reducer->ready = end;
}

/* Post every bucket whose end is final. */
static co_status reduce_post(co_reducer *reducer)
{
    for (; reducer->n_posted < reducer->n_bucket; reducer->n_posted++) {
        co_reducer_bucket *bucket = &reducer->bucket[reducer->n_posted];

        if (bucket->end > reducer->ready)
            break;
        CO_TRY(reduce_bucket(reducer, bucket));
    }
    return CO_OK;
}

co_status co_reducer_ready(co_reducer *reducer, size_t begin, size_t end)
{
    /* a range after a gap waits for co_reducer_post */
    if (begin <= reducer->ready && end > reducer->ready)
        reduce_advance(reducer, end);
    CO_TRY(reduce_post(reducer));
    return co_comm_progress(reducer->comm);
}

co_status co_reducer_post(co_reducer *reducer)
{
    reduce_advance(reducer, reducer->n);
    return reduce_post(reducer);
}

/* Pass on the next bucket, whose request is complete. */
static co_status reduce_hand_on(co_reducer *reducer, co_reducer_fn fn, void *arg)
{
    const co_reducer_bucket *bucket = &reducer->bucket[reducer->n_taken++];

    return fn ? fn(arg, bucket->begin, bucket->end) : CO_OK;
}

co_status co_reducer_take(co_reducer *reducer, co_reducer_fn fn, void *arg)
{
    bool done = !reducer->queue; /* with a queue, the queued work must not depend on which rank is
                                    ahead */

    while (done && reducer->n_taken < reducer->n_posted) {
        CO_TRY(co_request_test(&done, reducer->bucket[reducer->n_taken].request));
        if (!done)
            break;
        CO_TRY(reduce_hand_on(reducer, fn, arg));
    }
    return CO_OK;
}

/* Destroyed together, so that the number of requests a step uses does not depend on which rank is
   ahead. */
static void reduce_end_requests(co_reducer *reducer, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        co_request_destroy(reducer->bucket[i].request);
        reducer->bucket[i].request = NULL;
    }
}

co_status co_reducer_wait(co_reducer *reducer, co_reducer_fn fn, void *arg)
{
    while (reducer->n_taken < reducer->n_posted) {
        CO_TRY(co_request_order(reducer->bucket[reducer->n_taken].request, reducer->queue));
        CO_TRY(reduce_hand_on(reducer, fn, arg));
    }
    reduce_end_requests(reducer, reducer->n_taken);
    reducer->n_posted = reducer->n_taken = 0;
    reducer->ready = 0;
    if (reducer->tree)
        co_tree_sum_start(&reducer->sum);
    return CO_OK;
}

co_status co_reducer_gather(co_reducer *reducer, float *array)
{
    for (size_t i = 0; i < reducer->n_bucket; i++) {
        co_reducer_bucket *bucket = &reducer->bucket[i];
        const size_t n = bucket->end - bucket->begin;
        const co_coll_args args = {.coll = CO_COLL_GATHER_SLICES,
                                   .in = array + bucket->begin,
                                   .out = array + bucket->begin,
                                   .count = n,
                                   .each = co_comm_slice_each(reducer->comm, n),
                                   .dtype = CO_F32};

        CO_TRY(co_comm_enqueue(&bucket->request, reducer->comm, &args));
    }
    for (size_t i = 0; i < reducer->n_bucket; i++)
        CO_TRY(co_request_wait(reducer->bucket[i].request));
    reduce_end_requests(reducer, reducer->n_bucket);
    return CO_OK;
}

void co_reducer_fini(co_reducer *reducer)
{
    bool told = false;

    for (size_t i = 0; i < reducer->n_bucket; i++) {
        co_request *request = reducer->bucket[i].request;

        if (request && !told)
            co_comm_abandon(reducer->comm);
        told = told || request;
        co_request_destroy(request);
    }
    co_tree_sum_fini(&reducer->sum);
    co_free(reducer->bucket);
    *reducer = (co_reducer){.comm = NULL};
}
