/*
 * tree.c - the tree all-reduce over MPI, a piece at a time: each rank receives its slice of all
 * parts, sums them in tree order and sends the sum to all, or keeps it where slices are wanted.
 *
 * MPI's own reductions choose their order by size and number of ranks, so they are not used. Only
 * one piece is in flight at a time, so one set of buffers is enough.
 */
#include <string.h>

#include "comm/mpi/internal.h"
#include "comm/queued.h"
#include "comm/tree.h"
#include "core/mem.h"

#define MPI_TREE_LINE 32 /* in elements; slices are whole lines */

typedef struct mpi_tree {
    int *begin, *length;     /* (size) owned: each rank's slice of the piece */
    int *out_at, *out_n;     /* (size) owned: sent to each */
    int *in_at, *in_n;       /* (size) owned: received from each */
    unsigned char *out, *in; /* owned */
    size_t out_bytes, in_bytes;
} mpi_tree;

void co_mpi_tree_free(mpi_comm *c)
{
    mpi_tree *t = c->tree;

    if (!t)
        return;
    co_free(t->begin);
    co_free(t->out);
    co_free(t->in);
    co_free(t);
    c->tree = NULL;
}

static co_status tree_open(mpi_comm *c)
{
    const size_t size = (size_t)c->base.size;
    mpi_tree *t;

    if (c->tree)
        return CO_OK;
    t = c->tree = co_calloc(1, sizeof(*t));
    if (!t)
        return CO_E_NOMEM;
    t->begin = co_calloc(6 * size, sizeof(*t->begin));
    if (!t->begin)
        return CO_E_NOMEM;
    t->length = t->begin + size;
    t->out_at = t->length + size;
    t->out_n = t->out_at + size;
    t->in_at = t->out_n + size;
    t->in_n = t->in_at + size;
    return CO_OK;
}

static const unsigned char *tree_part(const mpi_request *r, int part)
{
    const co_coll_args *a = &r->link.base.args;
    const unsigned char *const *in = a->in;

    return in[part] + r->moved * co_dtype_size(a->dtype);
}

/* Compute what each rank sends and receives for a piece of n elements. */
static void tree_lay_out(mpi_tree *t, const mpi_comm *c, const co_coll_args *a, int n)
{
    const co_tree *tree = a->tree;
    const int me = c->base.rank;
    int in_at = 0, out_at = 0;

    for (int p = 0; p < c->base.size; p++) {
        size_t begin;

        t->length[p] = a->each ? (int)co_comm_slice(&begin, (size_t)n, a->each,
                                                    co_comm_slice_index(&c->base, p))
                               : (int)co_tree_slice(&begin, tree, (size_t)n, MPI_TREE_LINE, p);
        t->begin[p] = (int)begin;
    }
    for (int p = 0; p < c->base.size; p++) {
        t->out_n[p] = p == me ? 0 : tree->parts[me] * t->length[p];
        t->in_n[p] = p == me ? 0 : tree->parts[p] * t->length[me];
        t->out_at[p] = tree->parts[me] == 1 ? t->begin[p] : out_at;
        t->in_at[p] = in_at;
        out_at += t->out_n[p];
        in_at += t->in_n[p];
    }
}

/* A single part is sent in place; several are packed for each rank. */
static co_status tree_pack(const void **out, mpi_comm *c, const mpi_request *r, size_t esize)
{
    const int parts = r->link.base.args.tree->parts[c->base.rank];
    mpi_tree *t = c->tree;

    *out = tree_part(r, 0);
    if (parts == 1)
        return CO_OK;
    CO_TRY(co_mpi_grow(&t->out, &t->out_bytes, (size_t)parts * r->piece * esize));
    for (int p = 0; p < c->base.size; p++)
        for (int i = 0; p != c->base.rank && i < parts; i++)
            memcpy(t->out + (size_t)(t->out_at[p] + i * t->length[p]) * esize,
                   tree_part(r, i) + (size_t)t->begin[p] * esize, (size_t)t->length[p] * esize);
    *out = t->out;
    return CO_OK;
}

static co_status tree_exchange(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    const size_t esize = co_dtype_size(a->dtype);
    const int last = c->base.size - 1;
    const void *out;
    mpi_tree *t;

    CO_TRY(tree_open(c));
    t = c->tree;
    tree_lay_out(t, c, a, n);
    CO_TRY(co_mpi_grow(&t->in, &t->in_bytes, (size_t)(t->in_at[last] + t->in_n[last]) * esize));
    CO_TRY(tree_pack(&out, c, r, esize));
    return co_mpi_check(co_mpi->ialltoallv(out, t->out_n, t->out_at, co_mpi_type(a->dtype), t->in,
                                           t->in_n, t->in_at, co_mpi_type(a->dtype), c->data,
                                           &r->data),
                        "tree_allreduce");
}

static co_status tree_gather(mpi_comm *c, mpi_request *r)
{
    const co_coll_args *a = &r->link.base.args;
    const mpi_tree *t = c->tree;

    return co_mpi_check(
        co_mpi->iallgatherv(co_mpi->in_place, 0, co_mpi->no_type,
                            (unsigned char *)a->out + r->moved * co_dtype_size(a->dtype), t->length,
                            t->begin, co_mpi_type(a->dtype), c->data, &r->data),
        "tree_allreduce");
}

/* Stage 0: send slices of all parts to the ranks that sum them; stage 1: send the sums to all. */
co_status co_mpi_tree_start(mpi_comm *c, mpi_request *r, int n)
{
    return r->stage == 0 ? tree_exchange(c, r, n) : tree_gather(c, r);
}

static void tree_add_up(const mpi_comm *c, const mpi_request *r)
{
    const co_coll_args *a = &r->link.base.args;
    const size_t esize = co_dtype_size(a->dtype);
    const mpi_tree *t = c->tree;
    const int me = c->base.rank;
    const size_t begin = (size_t)t->begin[me] * esize, length = (size_t)t->length[me];
    const void *part[CO_TREE_MAX_LEAVES];
    int n = 0;

    for (int p = 0; p < c->base.size; p++)
        for (int i = 0; i < a->tree->parts[p]; i++)
            part[n++] = p == me ? tree_part(r, i) + begin
                                : t->in + ((size_t)t->in_at[p] + (size_t)i * length) * esize;
    co_tree_combine(a->tree, (unsigned char *)a->out + r->moved * esize + begin, part, length,
                    a->dtype);
}

co_status co_mpi_tree_end_stage(bool *done, mpi_comm *c, mpi_request *r)
{
    *done = r->stage == 1 || r->link.base.args.each;
    if (r->stage == 0)
        tree_add_up(c, r);
    r->stage = !*done;
    return CO_OK;
}
