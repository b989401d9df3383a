/*
 * shm_coll.c - collectives over shared memory, as three phases that advance on their own.
 *
 *   put     my chunk goes into my slot (once all have released what was in it)
 *   reduce  all have put: I combine my slice of the chunk over all ranks, in rank order
 *   get     all have reduced: I copy the result out and release the step
 *
 * Phases of later steps run ahead of earlier ones, across collectives too, as far as there are
 * slots. Small reductions and those without slices skip the middle: every rank combines all
 * chunks itself, in the same order, so the bits are the same everywhere.
 */
#include <string.h>

#include "comm/reduce.h"
#include "comm/shm_internal.h"
#include "comm/tree.h"

#define COLL_DIRECT_BYTES 4096 /* up to here one phase less is faster than a shared reduction */

/* One step of one collective, as its functions below see it. */
typedef struct coll_step {
    shm_comm *c;
    const shm_request *request;
    const co_coll_args *args;
    uint64_t step;
    size_t offset, n; /* first element of the chunk within a block; elements */
    int rank, size;
} coll_step;

typedef void (*coll_fn)(const coll_step *s);

typedef struct shm_coll {
    bool blocks; /* a slot holds a part of each rank's block */
    bool parts;  /* a slot holds a piece of each of the rank's parts of a tree */
    coll_fn put, reduce, get;
} shm_coll;

/* Address of the step's part of block `block` in a user's buffer. */
static const unsigned char *coll_in(const coll_step *s, int block)
{
    return (const unsigned char *)s->args->in +
           ((size_t)block * s->args->count + s->offset) * s->request->esize;
}

static unsigned char *coll_out(const coll_step *s, int block)
{
    return (unsigned char *)s->args->out +
           ((size_t)block * s->args->count + s->offset) * s->request->esize;
}

/* Address of element `at` in a rank's slot. */
static unsigned char *coll_slot(const coll_step *s, int rank, size_t at)
{
    return co_shm_slot(s->c, rank, s->step)->data + at * s->request->esize;
}

static void coll_copy(const coll_step *s, void *out, const void *in, size_t n)
{
    if (n)
        memcpy(out, in, n * s->request->esize);
}

/* Slice `rank` of the chunk: whole cache lines, so that no line has two writers. */
static size_t coll_slice(size_t *begin, const coll_step *s, int rank)
{
    const size_t line = SHM_LINE / s->request->esize, ranks = (size_t)s->size;
    const size_t each = ((s->n + ranks - 1) / ranks + line - 1) / line * line;
    const size_t from = (size_t)rank * each;

    *begin = from < s->n ? from : s->n;
    return s->n - *begin < each ? s->n - *begin : each;
}

/* out = chunks of all ranks combined in rank order, from element `at` of each slot; the own one
   is `own`. `out` is none of the sources. */
static void coll_combine(const coll_step *s, void *out, const void *own, size_t at, size_t n)
{
    const void *source = s->rank == 0 ? own : coll_slot(s, 0, at);

    if (s->size == 1)
        coll_copy(s, out, own, n);
    for (int p = 1; p < s->size; p++) {
        const void *next = p == s->rank ? own : coll_slot(s, p, at);

        co_reduce_pair(out, source, next, n, s->args->dtype, s->args->op);
        source = out;
    }
    if (s->args->op == CO_AVG)
        co_reduce_divide(out, n, s->args->dtype, s->size);
}

/* ---- what each collective does in each phase ---- */

static void coll_put_chunk(const coll_step *s)
{
    coll_copy(s, coll_slot(s, s->rank, 0), coll_in(s, 0), s->n);
}

static void coll_put_root(const coll_step *s)
{
    if (s->rank == s->args->peer)
        coll_put_chunk(s);
}

static void coll_put_not_root(const coll_step *s)
{
    if (s->rank != s->args->peer)
        coll_put_chunk(s);
}

/* Each slice but the own one, which stays where it is. */
static void coll_put_slices(const coll_step *s)
{
    for (int p = 0; p < s->size; p++) {
        size_t at;
        const size_t n = coll_slice(&at, s, p);

        if (p != s->rank)
            coll_copy(s, coll_slot(s, s->rank, at), coll_in(s, 0) + at * s->request->esize, n);
    }
}

static void coll_put_blocks(const coll_step *s)
{
    for (int p = 0; p < s->size; p++)
        if (p != s->rank)
            coll_copy(s, coll_slot(s, s->rank, (size_t)p * s->request->chunk), coll_in(s, p), s->n);
}

static void coll_put_root_blocks(const coll_step *s)
{
    if (s->rank == s->args->peer)
        coll_put_blocks(s);
}

/* The sum of my slice, into my own slot: only I read that part of it before. */
static void coll_reduce_slice(const coll_step *s)
{
    size_t at;
    const size_t n = coll_slice(&at, s, s->rank);

    coll_combine(s, coll_slot(s, s->rank, at), coll_in(s, 0) + at * s->request->esize, at, n);
}

static void coll_get_slices(const coll_step *s)
{
    for (int p = 0; p < s->size; p++) {
        size_t at;
        const size_t n = coll_slice(&at, s, p);

        coll_copy(s, coll_out(s, 0) + at * s->request->esize, coll_slot(s, p, at), n);
    }
}

static void coll_get_slices_root(const coll_step *s)
{
    if (s->rank == s->args->peer)
        coll_get_slices(s);
}

/* The own chunk is taken from the slot, as `in` may be `out`. */
static void coll_get_sum(const coll_step *s)
{
    coll_combine(s, coll_out(s, 0), coll_slot(s, s->rank, 0), 0, s->n);
}

static void coll_get_sum_root(const coll_step *s)
{
    if (s->rank == s->args->peer)
        coll_get_sum(s);
}

static void coll_get_block_sum(const coll_step *s)
{
    coll_combine(s, coll_out(s, 0), coll_in(s, s->rank), (size_t)s->rank * s->request->chunk, s->n);
}

static void coll_get_bcast(const coll_step *s)
{
    if (s->rank != s->args->peer)
        coll_copy(s, coll_out(s, 0), coll_slot(s, s->args->peer, 0), s->n);
}

static void coll_get_all(const coll_step *s)
{
    for (int p = 0; p < s->size; p++)
        coll_copy(s, coll_out(s, p), p == s->rank ? coll_in(s, 0) : coll_slot(s, p, 0), s->n);
}

static void coll_get_all_root(const coll_step *s)
{
    if (s->rank == s->args->peer)
        coll_get_all(s);
}

static void coll_get_scatter(const coll_step *s)
{
    const int root = s->args->peer;
    const size_t at = (size_t)s->rank * s->request->chunk;

    coll_copy(s, coll_out(s, 0), s->rank == root ? coll_in(s, root) : coll_slot(s, root, at), s->n);
}

/* ---- the same for the parts of a tree ---- */

/* Address of the step's piece of a part of this rank. */
static const unsigned char *coll_part(const coll_step *s, int part)
{
    const unsigned char *const *in = s->args->in;

    return in[part] + s->offset * s->request->esize;
}

static size_t coll_tree_slice(size_t *begin, const coll_step *s, int rank)
{
    return co_tree_slice(begin, s->args->tree, s->n, SHM_LINE / s->request->esize, rank);
}

static void coll_put_parts(const coll_step *s)
{
    for (int i = 0; i < s->args->tree->parts[s->rank]; i++)
        coll_copy(s, coll_slot(s, s->rank, (size_t)i * s->request->chunk), coll_part(s, i), s->n);
}

static void coll_put_part_slices(const coll_step *s)
{
    for (int p = 0; p < s->size; p++) {
        size_t at;
        const size_t n = coll_tree_slice(&at, s, p);

        for (int i = 0; p != s->rank && i < s->args->tree->parts[s->rank]; i++)
            coll_copy(s, coll_slot(s, s->rank, (size_t)i * s->request->chunk + at),
                      coll_part(s, i) + at * s->request->esize, n);
    }
}

/* out = the tree's sum of all parts, from element `at` of each; the own ones are in the slot too or
   where they came from. */
static void coll_combine_tree(const coll_step *s, void *out, bool own_in_slot, size_t at, size_t n)
{
    const void *part[CO_TREE_MAX_LEAVES];
    int n_part = 0;

    for (int p = 0; p < s->size; p++)
        for (int i = 0; i < s->args->tree->parts[p]; i++)
            part[n_part++] = p == s->rank && !own_in_slot
                                 ? coll_part(s, i) + at * s->request->esize
                                 : coll_slot(s, p, (size_t)i * s->request->chunk + at);
    co_tree_combine(s->args->tree, out, part, n, s->args->dtype);
}

static void coll_reduce_tree(const coll_step *s)
{
    size_t at;
    const size_t n = coll_tree_slice(&at, s, s->rank);

    coll_combine_tree(s, coll_slot(s, s->rank, at), false, at, n);
}

static void coll_get_tree_slices(const coll_step *s)
{
    for (int p = 0; p < s->size; p++) {
        size_t at;
        const size_t n = coll_tree_slice(&at, s, p);

        coll_copy(s, coll_out(s, 0) + at * s->request->esize, coll_slot(s, p, at), n);
    }
}

static void coll_get_tree(const coll_step *s)
{
    coll_combine_tree(s, coll_out(s, 0), true, 0, s->n);
}

static const shm_coll coll_table[CO_COLL_COUNT] = {
    [CO_COLL_BCAST] = {.put = coll_put_root, .get = coll_get_bcast},
    [CO_COLL_REDUCE] = {.put = coll_put_slices,
                        .reduce = coll_reduce_slice,
                        .get = coll_get_slices_root},
    [CO_COLL_ALLREDUCE] = {.put = coll_put_slices,
                           .reduce = coll_reduce_slice,
                           .get = coll_get_slices},
    [CO_COLL_REDUCE_SCATTER] = {.blocks = true, .put = coll_put_blocks, .get = coll_get_block_sum},
    [CO_COLL_ALLGATHER] = {.put = coll_put_chunk, .get = coll_get_all},
    [CO_COLL_GATHER] = {.put = coll_put_not_root, .get = coll_get_all_root},
    [CO_COLL_SCATTER] = {.blocks = true, .put = coll_put_root_blocks, .get = coll_get_scatter},
    [CO_COLL_SPLIT] = {.put = coll_put_chunk, .get = coll_get_all},
    [CO_COLL_TREE] = {.parts = true,
                      .put = coll_put_part_slices,
                      .reduce = coll_reduce_tree,
                      .get = coll_get_tree_slices},
};

static const shm_coll coll_reduce_small = {.put = coll_put_chunk, .get = coll_get_sum_root};
static const shm_coll coll_allreduce_small = {.put = coll_put_chunk, .get = coll_get_sum};

static const shm_coll coll_tree_small = {
    .parts = true, .put = coll_put_parts, .get = coll_get_tree};

static const shm_coll *coll_choose(const co_coll_args *args, size_t bytes)
{
    if (bytes <= COLL_DIRECT_BYTES && args->coll == CO_COLL_ALLREDUCE)
        return &coll_allreduce_small;
    if (bytes <= COLL_DIRECT_BYTES && args->coll == CO_COLL_REDUCE)
        return &coll_reduce_small;
    if (bytes <= COLL_DIRECT_BYTES && args->coll == CO_COLL_TREE)
        return &coll_tree_small;
    return &coll_table[args->coll];
}

/* ---- the phases ---- */

void co_shm_coll_post(shm_comm *c, shm_request *request)
{
    const co_coll_args *args = &request->link.base.args;
    size_t parts = 1;

    request->descriptor = co_comm_descriptor(args, c->sequence++);
    request->coll = coll_choose(args, args->count * request->esize);
    if (request->coll->blocks)
        parts = (size_t)c->base.size;
    else if (request->coll->parts)
        parts = (size_t)args->tree->most_parts;
    request->chunk = SHM_CHUNK / request->esize / parts;
    request->first = c->posted;
    request->steps = args->count ? (args->count - 1) / request->chunk + 1 : 1;
    c->posted += request->steps;
    if (c->last)
        c->last->link.next = &request->link;
    c->last = request;
    for (int phase = 0; phase < SHM_PHASES; phase++)
        if (!c->on[phase])
            c->on[phase] = request;
}

/* The next step of a phase, and the next request when that was its last. */
static void coll_advance(shm_comm *c, int phase)
{
    shm_request *request = c->on[phase];

    if (++c->step[phase] < request->first + request->steps)
        return;
    c->on[phase] = (shm_request *)request->link.next;
    if (phase != SHM_GET)
        return;
    request->link.base.done = true;
    if (c->last == request)
        c->last = NULL;
}

static void coll_do(shm_comm *c, int phase, coll_fn fn)
{
    const shm_request *request = c->on[phase];
    const size_t count = request->link.base.args.count;
    const size_t offset = (size_t)(c->step[phase] - request->first) * request->chunk;

    if (fn && count)
        fn(&(coll_step){.c = c,
                        .request = request,
                        .args = &request->link.base.args,
                        .step = c->step[phase],
                        .offset = offset,
                        .n = count - offset < request->chunk ? count - offset : request->chunk,
                        .rank = c->base.rank,
                        .size = c->base.size});
}

static bool coll_slot_is_free(shm_comm *c)
{
    uint64_t released = UINT64_MAX;

    if (c->step[SHM_PUT] < c->free_until)
        return true;
    for (int p = 0; p < c->base.size; p++) {
        const uint64_t r =
            atomic_load_explicit(&co_shm_counters(c, p)->released, memory_order_acquire);

        released = r < released ? r : released;
    }
    c->free_until = released + SHM_SLOTS;
    return c->step[SHM_PUT] < c->free_until;
}

static bool coll_put(shm_comm *c)
{
    shm_request *request = c->on[SHM_PUT];
    shm_slot *slot;

    if (!request || !coll_slot_is_free(c))
        return false;
    slot = co_shm_slot(c, c->base.rank, c->step[SHM_PUT]);
    slot->descriptor = request->descriptor;
    coll_do(c, SHM_PUT, request->coll->put);
    atomic_store_explicit(&slot->step, c->step[SHM_PUT] + 1, memory_order_release);
    coll_advance(c, SHM_PUT);
    return true;
}

static co_status coll_compare(const shm_comm *c, const shm_request *request, int peer)
{
    const co_coll_descriptor *theirs = &co_shm_slot(c, peer, c->step[SHM_REDUCE])->descriptor;
    char a[CO_COMM_DESCRIBE_MAX], b[CO_COMM_DESCRIBE_MAX];

    if (memcmp(theirs, &request->descriptor, sizeof(*theirs)) == 0)
        return CO_OK;
    return co_fail(CO_E_MISMATCH, "rank %d calls %s where rank %d calls %s", peer,
                   co_comm_describe(a, sizeof(a), theirs), c->base.rank,
                   co_comm_describe(b, sizeof(b), &request->descriptor));
}

static co_status coll_reduce(shm_comm *c, bool *moved)
{
    shm_request *request = c->on[SHM_REDUCE];
    const uint64_t step = c->step[SHM_REDUCE];

    if (!request || step == c->step[SHM_PUT])
        return CO_OK;
    for (; c->arrived < c->base.size; c->arrived++) {
        const shm_slot *slot = co_shm_slot(c, c->arrived, step);

        if (atomic_load_explicit(&((shm_slot *)slot)->step, memory_order_acquire) != step + 1)
            return CO_OK;
        if (step == request->first)
            CO_TRY(coll_compare(c, request, c->arrived));
    }
    c->arrived = 0;
    if (request->coll->reduce) {
        coll_do(c, SHM_REDUCE, request->coll->reduce);
        atomic_store_explicit(&co_shm_counters(c, c->base.rank)->reduced, step + 1,
                              memory_order_release);
    }
    coll_advance(c, SHM_REDUCE);
    *moved = true;
    return CO_OK;
}

static bool coll_get(shm_comm *c)
{
    shm_request *request = c->on[SHM_GET];
    const uint64_t step = c->step[SHM_GET];

    if (!request || step == c->step[SHM_REDUCE])
        return false;
    for (; request->coll->reduce && c->collected < c->base.size; c->collected++)
        if (atomic_load_explicit(&co_shm_counters(c, c->collected)->reduced,
                                 memory_order_acquire) <= step)
            return false;
    c->collected = 0;
    coll_do(c, SHM_GET, request->coll->get);
    atomic_store_explicit(&co_shm_counters(c, c->base.rank)->released, step + 1,
                          memory_order_release);
    coll_advance(c, SHM_GET);
    return true;
}

co_status co_shm_coll_progress(shm_comm *c)
{
    bool moved = c->on[SHM_GET] != NULL;

    while (moved) {
        moved = coll_put(c);
        CO_TRY(coll_reduce(c, &moved));
        moved = coll_get(c) || moved;
    }
    return CO_OK;
}

bool co_shm_coll_is_missing(const shm_comm *c, int rank)
{
    const uint64_t step = c->step[SHM_GET];
    shm_counters *counters = co_shm_counters(c, rank);

    if (c->step[SHM_REDUCE] > step)
        return atomic_load_explicit(&counters->reduced, memory_order_acquire) <= step;
    if (c->step[SHM_PUT] > step)
        return atomic_load_explicit(&co_shm_slot(c, rank, step)->step, memory_order_acquire) !=
               step + 1;
    return atomic_load_explicit(&counters->released, memory_order_acquire) + SHM_SLOTS <= step;
}
