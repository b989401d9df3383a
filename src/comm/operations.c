/*
 * operations.c - every operation in its two forms: non-blocking with a request, and blocking.
 *
 * Defines the arguments of each operation. Does not know how it is carried out.
 */
#include "comm/comm_internal.h"

/* Blocking if `request` is NULL. */
static co_status operations_begin(co_request **request, co_comm *comm, const co_coll_args *args)
{
    return request ? co_comm_post(request, comm, args) : co_comm_run(comm, args);
}

co_status co_comm_isend(co_request **request, co_comm *comm, const void *in, size_t count,
                        co_dtype dtype, int to)
{
    const co_coll_args args = {
        .coll = CO_COLL_SEND, .in = in, .count = count, .dtype = dtype, .peer = to};

    return operations_begin(request, comm, &args);
}

co_status co_comm_send(co_comm *comm, const void *in, size_t count, co_dtype dtype, int to)
{
    return co_comm_isend(NULL, comm, in, count, dtype, to);
}

co_status co_comm_irecv(co_request **request, co_comm *comm, void *out, size_t count,
                        co_dtype dtype, int from)
{
    const co_coll_args args = {
        .coll = CO_COLL_RECV, .out = out, .count = count, .dtype = dtype, .peer = from};

    return operations_begin(request, comm, &args);
}

co_status co_comm_recv(co_comm *comm, void *out, size_t count, co_dtype dtype, int from)
{
    return co_comm_irecv(NULL, comm, out, count, dtype, from);
}

co_status co_comm_ibcast(co_request **request, co_comm *comm, void *inout, size_t count,
                         co_dtype dtype, int root)
{
    const co_coll_args args = {.coll = CO_COLL_BCAST,
                               .in = inout,
                               .out = inout,
                               .count = count,
                               .dtype = dtype,
                               .peer = root};

    return operations_begin(request, comm, &args);
}

co_status co_comm_bcast(co_comm *comm, void *inout, size_t count, co_dtype dtype, int root)
{
    return co_comm_ibcast(NULL, comm, inout, count, dtype, root);
}

co_status co_comm_ireduce(co_request **request, co_comm *comm, void *out, const void *in,
                          size_t count, co_dtype dtype, co_reduce_op op, int root)
{
    const co_coll_args args = {.coll = CO_COLL_REDUCE,
                               .in = in,
                               .out = out,
                               .count = count,
                               .dtype = dtype,
                               .op = op,
                               .peer = root};

    return operations_begin(request, comm, &args);
}

co_status co_comm_reduce(co_comm *comm, void *out, const void *in, size_t count, co_dtype dtype,
                         co_reduce_op op, int root)
{
    return co_comm_ireduce(NULL, comm, out, in, count, dtype, op, root);
}

co_status co_comm_iallreduce(co_request **request, co_comm *comm, void *out, const void *in,
                             size_t count, co_dtype dtype, co_reduce_op op)
{
    const co_coll_args args = {
        .coll = CO_COLL_ALLREDUCE, .in = in, .out = out, .count = count, .dtype = dtype, .op = op};

    return operations_begin(request, comm, &args);
}

co_status co_comm_allreduce(co_comm *comm, void *out, const void *in, size_t count, co_dtype dtype,
                            co_reduce_op op)
{
    return co_comm_iallreduce(NULL, comm, out, in, count, dtype, op);
}

co_status co_comm_itree_allreduce(co_request **request, co_comm *comm, const co_tree *tree,
                                  void *out, const void *const *in, size_t count, co_dtype dtype)
{
    const co_coll_args args = {.coll = CO_COLL_TREE,
                               .in = in,
                               .out = out,
                               .count = count,
                               .dtype = dtype,
                               .op = CO_SUM,
                               .tree = tree};

    return operations_begin(request, comm, &args);
}

co_status co_comm_tree_allreduce(co_comm *comm, const co_tree *tree, void *out,
                                 const void *const *in, size_t count, co_dtype dtype)
{
    return co_comm_itree_allreduce(NULL, comm, tree, out, in, count, dtype);
}

co_status co_comm_ireduce_scatter(co_request **request, co_comm *comm, void *out, const void *in,
                                  size_t count, co_dtype dtype, co_reduce_op op)
{
    const co_coll_args args = {.coll = CO_COLL_REDUCE_SCATTER,
                               .in = in,
                               .out = out,
                               .count = count,
                               .dtype = dtype,
                               .op = op};

    return operations_begin(request, comm, &args);
}

co_status co_comm_reduce_scatter(co_comm *comm, void *out, const void *in, size_t count,
                                 co_dtype dtype, co_reduce_op op)
{
    return co_comm_ireduce_scatter(NULL, comm, out, in, count, dtype, op);
}

co_status co_comm_iallgather(co_request **request, co_comm *comm, void *out, const void *in,
                             size_t count, co_dtype dtype)
{
    const co_coll_args args = {
        .coll = CO_COLL_ALLGATHER, .in = in, .out = out, .count = count, .dtype = dtype};

    return operations_begin(request, comm, &args);
}

co_status co_comm_allgather(co_comm *comm, void *out, const void *in, size_t count, co_dtype dtype)
{
    return co_comm_iallgather(NULL, comm, out, in, count, dtype);
}

co_status co_comm_igather(co_request **request, co_comm *comm, void *out, const void *in,
                          size_t count, co_dtype dtype, int root)
{
    const co_coll_args args = {
        .coll = CO_COLL_GATHER, .in = in, .out = out, .count = count, .dtype = dtype, .peer = root};

    return operations_begin(request, comm, &args);
}

co_status co_comm_gather(co_comm *comm, void *out, const void *in, size_t count, co_dtype dtype,
                         int root)
{
    return co_comm_igather(NULL, comm, out, in, count, dtype, root);
}

co_status co_comm_iscatter(co_request **request, co_comm *comm, void *out, const void *in,
                           size_t count, co_dtype dtype, int root)
{
    const co_coll_args args = {.coll = CO_COLL_SCATTER,
                               .in = in,
                               .out = out,
                               .count = count,
                               .dtype = dtype,
                               .peer = root};

    return operations_begin(request, comm, &args);
}

co_status co_comm_scatter(co_comm *comm, void *out, const void *in, size_t count, co_dtype dtype,
                          int root)
{
    return co_comm_iscatter(NULL, comm, out, in, count, dtype, root);
}

co_status co_comm_ibarrier(co_request **request, co_comm *comm)
{
    const co_coll_args args = {.coll = CO_COLL_BARRIER};

    return operations_begin(request, comm, &args);
}

co_status co_comm_barrier(co_comm *comm)
{
    return co_comm_ibarrier(NULL, comm);
}
