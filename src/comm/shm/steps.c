/*
 * steps.c - what each collective does with a chunk in each phase: put, reduce, get.
 *
 * A chunk goes through its rank's slot or, in an all-reduce, stays in memory that all ranks see.
 * Does not know when a phase may run.
 */
#include <string.h>

#include "comm/reduce.h"
#include "comm/shm/internal.h"
#include "comm/tree.h"

#define STEPS_BLOCK_BYTES 8192 /* stays in L1 between a sum and its copies */
#define STEPS_OFFER_BYTES                                                                          \
    3072 /* from here on, the reduce phase is faster than copying all                              \
            chunks */

/* The step's part of block `block` in the user's buffer. */
static const unsigned char *steps_in(const shm_step *s, int block)
{
    return (const unsigned char *)s->args->in +
           ((size_t)block * s->args->count + s->offset) * s->request->esize;
}

static unsigned char *steps_out(const shm_step *s, int block)
{
    return (unsigned char *)s->args->out +
           ((size_t)block * s->args->count + s->offset) * s->request->esize;
}

/* Element `at` in a rank's slot. */
static unsigned char *steps_slot(const shm_step *s, int rank, size_t at)
{
    return co_shm_slot(s->c, rank, s->step)->data + at * s->request->esize;
}

static void steps_copy(const shm_step *s, void *out, const void *in, size_t n)
{
    if (n && out != in)
        memcpy(out, in, n * s->request->esize);
}

/* Slice `rank` of the chunk: whole cache lines, so that no line has two writers. */
static size_t steps_slice(size_t *begin, const shm_step *s, int rank)
{
    const size_t line = SHM_LINE / s->request->esize, ranks = (size_t)s->size;
    const size_t each = ((s->n + ranks - 1) / ranks + line - 1) / line * line;
    const size_t from = (size_t)rank * each;

    *begin = from < s->n ? from : s->n;
    return s->n - *begin < each ? s->n - *begin : each;
}

/* A rank's copy of a small chunk. */
static unsigned char *steps_small(const shm_step *s, int rank)
{
    return s->n * s->request->esize <= SHM_TINY ? co_shm_slot(s->c, rank, s->step)->tiny
                                                : co_shm_slot(s->c, rank, s->request->small)->small;
}

/* Element `at` of another rank's chunk. */
static const unsigned char *steps_chunk(const shm_step *s, int rank, size_t at)
{
    const shm_slot *slot = co_shm_slot(s->c, rank, s->step);
    const unsigned char *chunk = slot->in ? co_shm_window_at(s->c->shm, slot->in - 1)
                                 : s->request->coll->small ? steps_small(s, rank)
                                                           : slot->data;

    return chunk + at * s->request->esize;
}

/* out = chunks of all ranks combined in rank order, from element `at`; `own` is this rank's. `out`
   must not be a source, except rank 0's or 1's. */
static void steps_combine(const shm_step *s, void *out, const void *own, size_t at, size_t n)
{
    const void *source[SHM_MAX_RANKS];

    for (int p = 0; p < s->size; p++)
        source[p] = p == s->rank ? own : steps_chunk(s, p, at);
    if (s->size == 1)
        steps_copy(s, out, own, n);
    else
        co_reduce_all(out, source, s->size, n, s->args->dtype, s->args->op);
    if (s->args->op == CO_AVG)
        co_reduce_divide(out, n, s->args->dtype, s->size);
}

/* ---- what each collective does in each phase ---- */

static void steps_put_chunk(const shm_step *s)
{
    steps_copy(s, steps_slot(s, s->rank, 0), steps_in(s, 0), s->n);
}

static void steps_put_root(const shm_step *s)
{
    if (s->rank == s->args->peer)
        steps_put_chunk(s);
}

static void steps_put_not_root(const shm_step *s)
{
    if (s->rank != s->args->peer)
        steps_put_chunk(s);
}

/* Put all slices except this rank's, which is read in place. */
static void steps_put_slices(const shm_step *s)
{
    for (int p = 0; p < s->size; p++) {
        size_t at;
        const size_t n = steps_slice(&at, s, p);

        if (p != s->rank)
            steps_copy(s, steps_slot(s, s->rank, at), steps_in(s, 0) + at * s->request->esize, n);
    }
}

static void steps_put_own_slices(const shm_step *s)
{
    shm_slot *slot = co_shm_slot(s->c, s->rank, s->step);

    slot->in = slot->out = 0;
    steps_put_slices(s);
}

static void steps_put_blocks(const shm_step *s)
{
    co_shm_slot(s->c, s->rank, s->step)->in = 0;
    for (int p = 0; p < s->size; p++)
        if (p != s->rank)
            steps_copy(s, steps_slot(s, s->rank, (size_t)p * s->request->chunk), steps_in(s, p),
                       s->n);
}

static void steps_put_root_blocks(const shm_step *s)
{
    if (s->rank == s->args->peer)
        steps_put_blocks(s);
}

/* Element `at` of where a rank wants the result; NULL: it copies the result itself. */
static unsigned char *steps_wanted(const shm_step *s, int rank, size_t at)
{
    const uint64_t out = co_shm_slot(s->c, rank, s->step)->out;

    return out ? co_shm_window_at(s->c->shm, out - 1) + at * s->request->esize : NULL;
}

/* 1 + offset in the windows; 0: not in a window. */
static uint64_t steps_place(const shm_step *s, const void *data)
{
    const co_shm *shm = s->c->shm;

    return co_shm_window_has(shm, data, s->n * s->request->esize)
               ? (uint64_t)((const unsigned char *)data - shm->window_base) + 1
               : 0;
}

/* Like steps_put_slices, unless all ranks can read the chunk in place. */
static void steps_offer_slices(const shm_step *s)
{
    shm_slot *slot = co_shm_slot(s->c, s->rank, s->step);

    slot->in = steps_place(s, steps_in(s, 0));
    if (!slot->in)
        steps_put_slices(s);
    slot->out = steps_place(s, steps_out(s, 0));
}

/* Sum elements [at, at + n) of this rank's slice into each rank's buffer, or into this rank's slot
   for ranks that copy it. */
static void steps_share_sum(const shm_step *s, size_t at, size_t n, bool fetched)
{
    const unsigned char *mine = steps_in(s, 0) + at * s->request->esize;
    unsigned char *sum = steps_wanted(s, s->rank, at);
    unsigned char *slot = steps_slot(s, s->rank, at);

    /* In place, this rank's chunk is a source, which the sum may overwrite only for ranks 0 and
       1. */
    if (!sum || (sum == mine && s->rank > 1))
        sum = slot;
    steps_combine(s, sum, mine, at, n);
    if (fetched && sum != slot)
        steps_copy(s, slot, sum, n);
    for (int p = 0; p < s->size; p++) {
        unsigned char *wanted = steps_wanted(s, p, at);

        if (wanted && wanted != sum)
            steps_copy(s, wanted, sum, n);
    }
}

static void steps_share_slice(const shm_step *s)
{
    const size_t block = STEPS_BLOCK_BYTES / s->request->esize;
    bool fetched = false;
    size_t at, n = steps_slice(&at, s, s->rank);

    for (int p = 0; p < s->size; p++)
        fetched = fetched || !co_shm_slot(s->c, p, s->step)->out;
    for (size_t part; n; n -= part, at += part) {
        part = n < block ? n : block;
        steps_share_sum(s, at, part, fetched);
    }
}

static void steps_put_small(const shm_step *s)
{
    shm_slot *slot = co_shm_slot(s->c, s->rank, s->step);

    slot->in = slot->out = 0;
    steps_copy(s, steps_small(s, s->rank), steps_in(s, 0), s->n);
}

static void steps_offer_small(const shm_step *s)
{
    if (steps_place(s, steps_in(s, 0)) && steps_place(s, steps_out(s, 0)))
        steps_offer_slices(s);
    else
        steps_put_small(s);
}

/* Read this rank's chunk from its buffer, because what was just written to the slot may not be in
   the cache yet. If the buffer is also the output, only ranks 0 and 1 read it before they write it;
   others use the slot. */
static void steps_get_small(const shm_step *s)
{
    const unsigned char *own = steps_in(s, 0);

    if (own == steps_out(s, 0) && s->rank > 1)
        own = steps_small(s, s->rank);
    steps_combine(s, steps_out(s, 0), own, 0, s->n);
}

/* The same for two ranks, neither of which needs a copy. */
static void steps_get_small_pair(const shm_step *s)
{
    const unsigned char *mine = steps_in(s, 0);
    const unsigned char *theirs = steps_small(s, !s->rank);

    co_reduce_pair(steps_out(s, 0), s->rank ? theirs : mine, s->rank ? mine : theirs, s->n,
                   s->args->dtype, s->args->op);
    if (s->args->op == CO_AVG)
        co_reduce_divide(steps_out(s, 0), s->n, s->args->dtype, s->size);
}

static void steps_get_slices(const shm_step *s)
{
    for (int p = 0; p < s->size; p++) {
        size_t at;
        const size_t n = steps_slice(&at, s, p);

        steps_copy(s, steps_out(s, 0) + at * s->request->esize, steps_slot(s, p, at), n);
    }
}

static void steps_fetch_slices(const shm_step *s)
{
    if (!co_shm_slot(s->c, s->rank, s->step)->out)
        steps_get_slices(s);
}

static void steps_fetch_small(const shm_step *s)
{
    if (!s->request->shared)
        steps_get_small(s);
    else
        steps_fetch_slices(s);
}

static void steps_get_slices_root(const shm_step *s)
{
    if (s->rank == s->args->peer)
        steps_get_slices(s);
}

static void steps_get_small_root(const shm_step *s)
{
    if (s->rank == s->args->peer)
        steps_get_small(s);
}

static void steps_get_block_sum(const shm_step *s)
{
    steps_combine(s, steps_out(s, 0), steps_in(s, s->rank), (size_t)s->rank * s->request->chunk,
                  s->n);
}

static void steps_get_bcast(const shm_step *s)
{
    if (s->rank != s->args->peer)
        steps_copy(s, steps_out(s, 0), steps_slot(s, s->args->peer, 0), s->n);
}

static void steps_get_all(const shm_step *s)
{
    for (int p = 0; p < s->size; p++)
        steps_copy(s, steps_out(s, p), p == s->rank ? steps_in(s, 0) : steps_slot(s, p, 0), s->n);
}

static void steps_get_all_root(const shm_step *s)
{
    if (s->rank == s->args->peer)
        steps_get_all(s);
}

static void steps_get_scatter(const shm_step *s)
{
    const int root = s->args->peer;
    const size_t at = (size_t)s->rank * s->request->chunk;

    steps_copy(s, steps_out(s, 0), s->rank == root ? steps_in(s, root) : steps_slot(s, root, at),
               s->n);
}

/* ---- the same for the parts of a tree ---- */

/* The step's piece of a part of this rank. */
static const unsigned char *steps_part(const shm_step *s, int part)
{
    const unsigned char *const *in = s->args->in;

    return in[part] + s->offset * s->request->esize;
}

static size_t steps_tree_slice(size_t *begin, const shm_step *s, int rank)
{
    return co_tree_slice(begin, s->args->tree, s->n, SHM_LINE / s->request->esize, rank);
}

static void steps_put_parts(const shm_step *s)
{
    for (int i = 0; i < s->args->tree->parts[s->rank]; i++)
        steps_copy(s, steps_slot(s, s->rank, (size_t)i * s->request->chunk), steps_part(s, i),
                   s->n);
}

static void steps_put_part_slices(const shm_step *s)
{
    for (int p = 0; p < s->size; p++) {
        size_t at;
        const size_t n = steps_tree_slice(&at, s, p);

        for (int i = 0; p != s->rank && i < s->args->tree->parts[s->rank]; i++)
            steps_copy(s, steps_slot(s, s->rank, (size_t)i * s->request->chunk + at),
                       steps_part(s, i) + at * s->request->esize, n);
    }
}

/* out = the tree's sum of all parts, from element `at`; this rank's own parts are read from its
   slot or from its buffers. */
static void steps_combine_tree(const shm_step *s, void *out, bool own_in_slot, size_t at, size_t n)
{
    const void *part[CO_TREE_MAX_LEAVES];
    int n_part = 0;

    for (int p = 0; p < s->size; p++)
        for (int i = 0; i < s->args->tree->parts[p]; i++)
            part[n_part++] = p == s->rank && !own_in_slot
                                 ? steps_part(s, i) + at * s->request->esize
                                 : steps_slot(s, p, (size_t)i * s->request->chunk + at);
    co_tree_combine(s->args->tree, out, part, n, s->args->dtype);
}

static void steps_reduce_tree(const shm_step *s)
{
    size_t at;
    const size_t n = steps_tree_slice(&at, s, s->rank);

    steps_combine_tree(s, steps_slot(s, s->rank, at), false, at, n);
}

static void steps_get_tree_slices(const shm_step *s)
{
    for (int p = 0; p < s->size; p++) {
        size_t at;
        const size_t n = steps_tree_slice(&at, s, p);

        steps_copy(s, steps_out(s, 0) + at * s->request->esize, steps_slot(s, p, at), n);
    }
}

static void steps_get_tree(const shm_step *s)
{
    steps_combine_tree(s, steps_out(s, 0), true, 0, s->n);
}

static const shm_coll steps_table[CO_COLL_COUNT] = {
    [CO_COLL_BCAST] = {.put = steps_put_root, .get = steps_get_bcast},
    [CO_COLL_REDUCE] = {.put = steps_put_own_slices,
                        .reduce = steps_share_slice,
                        .get = steps_get_slices_root},
    [CO_COLL_ALLREDUCE] = {.put = steps_offer_slices,
                           .reduce = steps_share_slice,
                           .get = steps_fetch_slices},
    [CO_COLL_REDUCE_SCATTER] = {.blocks = true,
                                .put = steps_put_blocks,
                                .get = steps_get_block_sum},
    [CO_COLL_ALLGATHER] = {.put = steps_put_chunk, .get = steps_get_all},
    [CO_COLL_GATHER] = {.put = steps_put_not_root, .get = steps_get_all_root},
    [CO_COLL_SCATTER] = {.blocks = true, .put = steps_put_root_blocks, .get = steps_get_scatter},
    [CO_COLL_SPLIT] = {.put = steps_put_chunk, .get = steps_get_all},
    [CO_COLL_TREE] = {.parts = true,
                      .put = steps_put_part_slices,
                      .reduce = steps_reduce_tree,
                      .get = steps_get_tree_slices},
};

static const shm_coll steps_reduce_small = {
    .small = true, .put = steps_put_small, .get = steps_get_small_root};
static const shm_coll steps_allreduce_pair = {
    .small = true, .put = steps_put_small, .get = steps_get_small_pair};
static const shm_coll steps_allreduce_tiny = {
    .small = true, .put = steps_put_small, .get = steps_get_small};
static const shm_coll steps_allreduce_small = {
    .small = true, .put = steps_offer_small, .reduce = steps_share_slice, .get = steps_fetch_small};

static const shm_coll steps_tree_small = {
    .parts = true, .put = steps_put_parts, .get = steps_get_tree};

const shm_coll *co_shm_coll_choose(const co_coll_args *args, size_t bytes, int ranks)
{
    if (args->each)
        return co_shm_coll_slices(args->coll);
    if (bytes < STEPS_OFFER_BYTES && args->coll == CO_COLL_ALLREDUCE)
        return ranks == 2 ? &steps_allreduce_pair : &steps_allreduce_tiny;
    if (bytes <= SHM_SMALL && args->coll == CO_COLL_ALLREDUCE)
        return &steps_allreduce_small;
    if (bytes <= SHM_SMALL && args->coll == CO_COLL_REDUCE)
        return &steps_reduce_small;
    if (bytes <= SHM_SMALL && args->coll == CO_COLL_TREE)
        return &steps_tree_small;
    return &steps_table[args->coll];
}
