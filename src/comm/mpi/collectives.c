/*
 * collectives.c - moves the data of one operation, in pieces that fit an MPI count.
 *
 * Knows which MPI call moves what; order, checks and waiting are in mpi.c.
 */
#include "comm/mpi/pipeline.h"
#include "comm/queued.h"
#include "comm/reduce.h"
#include "core/mem.h"

#define COLL_PIECE ((size_t)1 << 20) /* in elements */

typedef co_status (*coll_start_fn)(mpi_comm *c, mpi_request *r, int n);

co_status co_mpi_grow(unsigned char **buffer, size_t *bytes, size_t need)
{
    unsigned char *grown;

    if (need <= *bytes)
        return CO_OK;
    grown = co_realloc(*buffer, need, 1);
    if (!grown)
        return CO_E_NOMEM;
    *buffer = grown;
    *bytes = need;
    return CO_OK;
}

mpi_type co_mpi_type(co_dtype dtype)
{
    switch (dtype) {
    case CO_F32:
        return co_mpi->f32;
    case CO_F64:
        return co_mpi->f64;
    case CO_I32:
        return co_mpi->i32;
    case CO_I64:
        return co_mpi->i64;
    case CO_BF16:
    case CO_F16:
        return co_mpi->u16;
    default:
        return co_mpi->u8;
    }
}

/* Address of element `at`; NULL stays NULL, on ranks that do not use the buffer. */
static void *coll_at(const void *base, const co_coll_args *args, size_t at)
{
    return base ? (unsigned char *)base + at * co_dtype_size(args->dtype) : NULL;
}

/* A type of n elements with the extent of a whole block, so that one piece of each block is
   received. */
static co_status coll_block_type(mpi_type *out, const co_coll_args *args, int n)
{
    const ptrdiff_t extent = (ptrdiff_t)(args->count * co_dtype_size(args->dtype));

    return co_mpi_check(co_mpi->type_block(n, co_mpi_type(args->dtype), extent, out), "data type");
}

static co_status coll_bcast(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;

    return co_mpi_check(co_mpi->ibcast(coll_at(a->out, a, r->moved), n, co_mpi_type(a->dtype),
                                       a->peer, c->data, &r->data),
                        "bcast");
}

static co_status coll_reduce(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    const bool root = a->peer == c->base.rank;
    const void *in = root && a->in == a->out ? co_mpi->in_place : coll_at(a->in, a, r->moved);

    return co_mpi_check(co_mpi->ireduce(in, root ? coll_at(a->out, a, r->moved) : NULL, n,
                                        co_mpi_type(a->dtype), co_mpi_op(c, a->dtype, a->op),
                                        a->peer, c->data, &r->data),
                        "reduce");
}

/* `moved` runs over all blocks; the pieces of a block are reduced to the rank it belongs to. */
static co_status coll_reduce_scatter(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    const int to = (int)(r->moved / a->count);
    const size_t at = r->moved % a->count;

    return co_mpi_check(co_mpi->ireduce(coll_at(a->in, a, r->moved),
                                        to == c->base.rank ? coll_at(a->out, a, at) : NULL, n,
                                        co_mpi_type(a->dtype), co_mpi_op(c, a->dtype, a->op), to,
                                        c->data, &r->data),
                        "reduce_scatter");
}

static co_status coll_allgather(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    mpi_type block;

    CO_TRY(coll_block_type(&block, a, n));
    CO_TRY(
        co_mpi_check(co_mpi->iallgather(coll_at(a->in, a, r->moved), n, co_mpi_type(a->dtype),
                                        coll_at(a->out, a, r->moved), 1, block, c->data, &r->data),
                     "allgather"));
    return co_mpi_check(co_mpi->type_free(&block), "allgather");
}

static co_status coll_gather(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    mpi_type block;

    CO_TRY(coll_block_type(&block, a, n));
    CO_TRY(co_mpi_check(co_mpi->igather(coll_at(a->in, a, r->moved), n, co_mpi_type(a->dtype),
                                        coll_at(a->out, a, r->moved), 1, block, a->peer, c->data,
                                        &r->data),
                        "gather"));
    return co_mpi_check(co_mpi->type_free(&block), "gather");
}

static co_status coll_scatter(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    mpi_type block;

    CO_TRY(coll_block_type(&block, a, n));
    CO_TRY(co_mpi_check(co_mpi->iscatter(coll_at(a->in, a, r->moved), 1, block,
                                         coll_at(a->out, a, r->moved), n, co_mpi_type(a->dtype),
                                         a->peer, c->data, &r->data),
                        "scatter"));
    return co_mpi_check(co_mpi->type_free(&block), "scatter");
}

static co_status coll_send(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;

    return co_mpi_check(co_mpi->isend(coll_at(a->in, a, r->moved), n, co_mpi_type(a->dtype),
                                      a->peer, CO_MPI_TAG_DATA, c->data, &r->data),
                        "send");
}

static co_status coll_receive(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;

    return co_mpi_check(co_mpi->irecv(coll_at(a->out, a, r->moved), n, co_mpi_type(a->dtype),
                                      a->peer, CO_MPI_TAG_DATA, c->data, &r->data),
                        "recv");
}

/* Where slices do not follow hosts (co_mpi_is_piped). */
static co_status coll_gather_slices(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    int *at = c->pipe->at, *length = at + c->base.size;

    (void)n;
    for (int p = 0; p < c->base.size; p++) {
        size_t begin;

        length[p] = (int)co_comm_slice(&begin, a->count, a->each, p);
        at[p] = (int)begin;
    }
    return co_mpi_check(co_mpi->iallgatherv(co_mpi->in_place, 0, co_mpi->no_type, a->out, length,
                                            at, co_mpi_type(a->dtype), c->data, &r->data),
                        "gather_slices");
}

static const coll_start_fn coll_table[CO_COLL_COUNT] = {
    [CO_COLL_BCAST] = coll_bcast,
    [CO_COLL_REDUCE] = coll_reduce,
    [CO_COLL_REDUCE_SCATTER] = coll_reduce_scatter,
    [CO_COLL_ALLGATHER] = coll_allgather,
    [CO_COLL_GATHER] = coll_gather,
    [CO_COLL_SCATTER] = coll_scatter,
    [CO_COLL_SEND] = coll_send,
    [CO_COLL_RECV] = coll_receive,
    [CO_COLL_TREE] = co_mpi_tree_start,
    [CO_COLL_TREE_SLICES] = co_mpi_tree_start,
    [CO_COLL_GATHER_SLICES] = coll_gather_slices,
};

size_t co_mpi_elements(const mpi_comm *c, const co_coll_args *args)
{
    if (args->coll == CO_COLL_REDUCE_SCATTER)
        return (size_t)c->base.size * args->count;
    return coll_table[args->coll] || co_mpi_is_piped(c, args) ? args->count : 0;
}

co_status co_mpi_start_piece(mpi_comm *c, mpi_request *r)
{
    const co_coll_args *args = &r->link.base.args;
    const size_t left = args->count - r->moved % args->count; /* of this block */

    r->piece = left < COLL_PIECE || args->each ? left : COLL_PIECE;
    return coll_table[args->coll](c, r, (int)r->piece);
}

co_status co_mpi_end_stage(bool *done, mpi_comm *c, mpi_request *r)
{
    *done = true;
    return co_comm_is_tree(&r->link.base.args) ? co_mpi_tree_end_stage(done, c, r) : CO_OK;
}

void co_mpi_finish_data(const mpi_comm *c, const co_coll_args *args)
{
    const bool has_result = args->coll == CO_COLL_REDUCE_SCATTER ||
                            (args->coll == CO_COLL_REDUCE && args->peer == c->base.rank);

    if (has_result && args->op == CO_AVG)
        co_reduce_divide(args->out, args->count, args->dtype, c->base.size);
}
