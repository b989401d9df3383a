/*
 * collectives.c - the data of one operation, in pieces that an MPI count can hold.
 *
 * Knows which MPI call moves what; knows nothing of order, checks and waiting (mpi.c).
 */
#include "comm/mpi/internal.h"
#include "comm/reduce.h"
#include "core/mem.h"

#define COLL_PIECE ((size_t)1 << 20) /* elements */

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

MPI_Datatype co_mpi_type(co_dtype dtype)
{
    switch (dtype) {
    case CO_F32:
        return MPI_FLOAT;
    case CO_F64:
        return MPI_DOUBLE;
    case CO_I32:
        return MPI_INT32_T;
    case CO_I64:
        return MPI_INT64_T;
    case CO_BF16:
    case CO_F16:
        return MPI_UINT16_T;
    default:
        return MPI_UINT8_T;
    }
}

/* Address of element `at`; NULL stays NULL, on ranks that do not use the buffer. */
static void *coll_at(const void *base, const co_coll_args *args, size_t at)
{
    return base ? (unsigned char *)base + at * co_dtype_size(args->dtype) : NULL;
}

/* n elements, of which each block has one piece: as a type whose extent is the whole block. */
static co_status coll_block_type(MPI_Datatype *out, const co_coll_args *args, int n)
{
    const MPI_Aint extent = (MPI_Aint)(args->count * co_dtype_size(args->dtype));
    MPI_Datatype piece;

    CO_TRY(co_mpi_check(MPI_Type_contiguous(n, co_mpi_type(args->dtype), &piece), "data type"));
    CO_TRY(co_mpi_check(MPI_Type_create_resized(piece, 0, extent, out), "data type"));
    CO_TRY(co_mpi_check(MPI_Type_free(&piece), "data type"));
    return co_mpi_check(MPI_Type_commit(out), "data type");
}

static co_status coll_bcast(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;

    return co_mpi_check(MPI_Ibcast(coll_at(a->out, a, r->moved), n, co_mpi_type(a->dtype), a->peer,
                                   c->data, &r->data),
                        "bcast");
}

static co_status coll_reduce(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    const bool root = a->peer == c->base.rank;
    const void *in = root && a->in == a->out ? MPI_IN_PLACE : coll_at(a->in, a, r->moved);

    return co_mpi_check(MPI_Ireduce(in, root ? coll_at(a->out, a, r->moved) : NULL, n,
                                    co_mpi_type(a->dtype), co_mpi_op(c, a->dtype, a->op), a->peer,
                                    c->data, &r->data),
                        "reduce");
}

/* `moved` runs over the blocks: a block's pieces are reduced onto the rank that it is for. */
static co_status coll_reduce_scatter(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    const int to = (int)(r->moved / a->count);
    const size_t at = r->moved % a->count;

    return co_mpi_check(
        MPI_Ireduce(coll_at(a->in, a, r->moved), to == c->base.rank ? coll_at(a->out, a, at) : NULL,
                    n, co_mpi_type(a->dtype), co_mpi_op(c, a->dtype, a->op), to, c->data, &r->data),
        "reduce_scatter");
}

static co_status coll_allgather(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    MPI_Datatype block;

    CO_TRY(coll_block_type(&block, a, n));
    CO_TRY(co_mpi_check(MPI_Iallgather(coll_at(a->in, a, r->moved), n, co_mpi_type(a->dtype),
                                       coll_at(a->out, a, r->moved), 1, block, c->data, &r->data),
                        "allgather"));
    return co_mpi_check(MPI_Type_free(&block), "allgather");
}

static co_status coll_gather(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    MPI_Datatype block;

    CO_TRY(coll_block_type(&block, a, n));
    CO_TRY(co_mpi_check(MPI_Igather(coll_at(a->in, a, r->moved), n, co_mpi_type(a->dtype),
                                    coll_at(a->out, a, r->moved), 1, block, a->peer, c->data,
                                    &r->data),
                        "gather"));
    return co_mpi_check(MPI_Type_free(&block), "gather");
}

static co_status coll_scatter(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;
    MPI_Datatype block;

    CO_TRY(coll_block_type(&block, a, n));
    CO_TRY(co_mpi_check(MPI_Iscatter(coll_at(a->in, a, r->moved), 1, block,
                                     coll_at(a->out, a, r->moved), n, co_mpi_type(a->dtype),
                                     a->peer, c->data, &r->data),
                        "scatter"));
    return co_mpi_check(MPI_Type_free(&block), "scatter");
}

static co_status coll_send(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;

    return co_mpi_check(MPI_Isend(coll_at(a->in, a, r->moved), n, co_mpi_type(a->dtype), a->peer,
                                  CO_MPI_TAG_DATA, c->data, &r->data),
                        "send");
}

static co_status coll_receive(mpi_comm *c, mpi_request *r, int n)
{
    const co_coll_args *a = &r->link.base.args;

    return co_mpi_check(MPI_Irecv(coll_at(a->out, a, r->moved), n, co_mpi_type(a->dtype), a->peer,
                                  CO_MPI_TAG_DATA, c->data, &r->data),
                        "recv");
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
};

size_t co_mpi_elements(const mpi_comm *c, const co_coll_args *args)
{
    if (args->coll == CO_COLL_REDUCE_SCATTER)
        return (size_t)c->base.size * args->count;
    return coll_table[args->coll] || args->coll == CO_COLL_ALLREDUCE ? args->count : 0;
}

co_status co_mpi_start_piece(mpi_comm *c, mpi_request *r)
{
    const co_coll_args *args = &r->link.base.args;
    const size_t left = args->count - r->moved % args->count; /* of this block */

    r->piece = left < COLL_PIECE ? left : COLL_PIECE;
    return coll_table[args->coll](c, r, (int)r->piece);
}

co_status co_mpi_end_stage(bool *done, mpi_comm *c, mpi_request *r)
{
    *done = true;
    return r->link.base.args.coll == CO_COLL_TREE ? co_mpi_tree_end_stage(done, c, r) : CO_OK;
}

void co_mpi_finish_data(const mpi_comm *c, const co_coll_args *args)
{
    const bool has_result = args->coll == CO_COLL_REDUCE_SCATTER ||
                            (args->coll == CO_COLL_REDUCE && args->peer == c->base.rank);

    if (has_result && args->op == CO_AVG)
        co_reduce_divide(args->out, args->count, args->dtype, c->base.size);
}
