/*
 * slices.c - the halves of an all-reduce, by slices: what steps.c does for the other collectives.
 *
 * A rank adds up its slice where it is, reading those of others in memory that all ranks see, or in
 * slots; sums in tree order go through slots, and so does what is gathered.
 */
#include <string.h>

#include "comm/reduce.h"
#include "comm/shm/internal.h"
#include "comm/tree.h"

#define SLICES_BLOCK_BYTES 8192 /* stays in L1 between a sum and its copy */

/* Element `at` in a rank's slot. */
static unsigned char *slices_slot(const shm_step *s, int rank, size_t at)
{
    return co_shm_slot(s->c, rank, s->step)->data + at * s->request->esize;
}

static void slices_copy(const shm_step *s, void *out, const void *in, size_t n)
{
    if (n && out != in)
        memcpy(out, in, n * s->request->esize);
}

/* The step's piece of slice `p`: returns its elements, from *at of the buffer on. */
static size_t slices_piece(size_t *at, const shm_step *s, int p)
{
    const size_t count = s->args->count, begin = (size_t)p * s->args->each + s->offset;

    *at = begin < count ? begin : count;
    return count - *at < s->n ? count - *at : s->n;
}

/* Where slice `p` is in a slot that has all. */
static size_t slices_at(const shm_step *s, int p, int part)
{
    return ((size_t)part * (size_t)s->size + (size_t)p) * s->request->chunk;
}

/* All slices but this rank's, unless all ranks can read them in place. */
static void slices_offer_pieces(const shm_step *s)
{
    shm_slot *slot = co_shm_slot(s->c, s->rank, s->step);
    const size_t esize = s->request->esize;
    const unsigned char *in = s->args->in;
    const bool shared = co_shm_window_has(s->c->shm, in, s->args->count * esize);

    slot->in = shared ? (uint64_t)(in - s->c->shm->window_base) + 1 : 0;
    for (int p = 0; p < s->size && !shared; p++) {
        size_t at;
        const size_t n = slices_piece(&at, s, p);

        if (p != s->rank)
            slices_copy(s, slices_slot(s, s->rank, slices_at(s, p, 0)), in + at * esize, n);
    }
}

/* Add up this rank's piece; the chunks of ranks beyond 1 are read after the sum has begun, so the
   sum of such a rank does not begin in its own. */
static void slices_add_piece(const shm_step *s)
{
    const size_t esize = s->request->esize, block = SLICES_BLOCK_BYTES / esize;
    const void *source[SHM_MAX_RANKS];
    unsigned char *room = slices_slot(s, s->rank, slices_at(s, s->rank, 0));
    size_t at, part, n = slices_piece(&at, s, s->rank);

    for (size_t done = 0; done < n; done += part) {
        unsigned char *out = (unsigned char *)s->args->out + (at + done) * esize;
        unsigned char *sum = s->rank > 1 ? room : out;

        part = n - done < block ? n - done : block;
        for (int p = 0; p < s->size; p++) {
            const uint64_t in = co_shm_slot(s->c, p, s->step)->in;

            source[p] = p == s->rank ? out
                        : in         ? co_shm_window_at(s->c->shm, in - 1) + (at + done) * esize
                                     : slices_slot(s, p, slices_at(s, s->rank, 0) + done);
        }
        if (s->size > 1)
            co_reduce_all(sum, source, s->size, part, s->args->dtype, s->args->op);
        if (s->args->op == CO_AVG)
            co_reduce_divide(sum, part, s->args->dtype, s->size);
        slices_copy(s, out, sum, part);
    }
}

static void slices_put_piece(const shm_step *s)
{
    size_t at;
    const size_t n = slices_piece(&at, s, s->rank);

    slices_copy(s, slices_slot(s, s->rank, 0),
                (const unsigned char *)s->args->in + at * s->request->esize, n);
}

static void slices_get_pieces(const shm_step *s)
{
    for (int p = 0; p < s->size; p++) {
        size_t at;
        const size_t n = slices_piece(&at, s, p);

        if (p != s->rank)
            slices_copy(s, (unsigned char *)s->args->out + at * s->request->esize,
                        slices_slot(s, p, 0), n);
    }
}

static void slices_put_part_pieces(const shm_step *s)
{
    const unsigned char *const *in = s->args->in;

    for (int p = 0; p < s->size; p++) {
        size_t at;
        const size_t n = slices_piece(&at, s, p);

        for (int i = 0; p != s->rank && i < s->args->tree->parts[s->rank]; i++)
            slices_copy(s, slices_slot(s, s->rank, slices_at(s, p, i)),
                        in[i] + at * s->request->esize, n);
    }
}

static void slices_add_part_pieces(const shm_step *s)
{
    const unsigned char *const *in = s->args->in;
    const void *part[CO_TREE_MAX_LEAVES];
    size_t at;
    const size_t n = slices_piece(&at, s, s->rank);
    int n_part = 0;

    for (int p = 0; p < s->size; p++)
        for (int i = 0; i < s->args->tree->parts[p]; i++)
            part[n_part++] = p == s->rank ? in[i] + at * s->request->esize
                                          : slices_slot(s, p, slices_at(s, s->rank, i));
    co_tree_combine(s->args->tree, (unsigned char *)s->args->out + at * s->request->esize, part, n,
                    s->args->dtype);
}

const shm_coll *co_shm_coll_slices(co_coll coll)
{
    static const shm_coll reduce = {
        .blocks = true, .slices = true, .put = slices_offer_pieces, .reduce = slices_add_piece};
    static const shm_coll gather = {
        .slices = true, .put = slices_put_piece, .get = slices_get_pieces};
    static const shm_coll tree = {.blocks = true,
                                  .parts = true,
                                  .slices = true,
                                  .put = slices_put_part_pieces,
                                  .get = slices_add_part_pieces};

    return coll == CO_COLL_REDUCE_SLICES   ? &reduce
           : coll == CO_COLL_GATHER_SLICES ? &gather
                                           : &tree;
}
