/*
 * blocking.c - the blocking form of every operation: the non-blocking one, then its wait.
 */
#include <cohort/comm.h>

/* `posted` is what posting returned; the request goes either way. */
static co_status blocking_finish(co_status posted, co_request *request)
{
    co_status st = posted;

    if (st == CO_OK)
        st = co_request_wait(request);
    co_request_destroy(request);
    return st;
}

co_status co_comm_send(co_comm *comm, const void *in, size_t count, co_dtype dtype, int to)
{
    co_request *request = NULL;
    co_status st = co_comm_isend(&request, comm, in, count, dtype, to);

    return blocking_finish(st, request);
}

co_status co_comm_recv(co_comm *comm, void *out, size_t count, co_dtype dtype, int from)
{
    co_request *request = NULL;
    co_status st = co_comm_irecv(&request, comm, out, count, dtype, from);

    return blocking_finish(st, request);
}

co_status co_comm_bcast(co_comm *comm, void *inout, size_t count, co_dtype dtype, int root)
{
    co_request *request = NULL;
    co_status st = co_comm_ibcast(&request, comm, inout, count, dtype, root);

    return blocking_finish(st, request);
}

co_status co_comm_reduce(co_comm *comm, void *out, const void *in, size_t count, co_dtype dtype,
                         co_reduce_op op, int root)
{
    co_request *request = NULL;
    co_status st = co_comm_ireduce(&request, comm, out, in, count, dtype, op, root);

    return blocking_finish(st, request);
}

co_status co_comm_allreduce(co_comm *comm, void *out, const void *in, size_t count, co_dtype dtype,
                            co_reduce_op op)
{
    co_request *request = NULL;
    co_status st = co_comm_iallreduce(&request, comm, out, in, count, dtype, op);

    return blocking_finish(st, request);
}

co_status co_comm_tree_allreduce(co_comm *comm, const co_tree *tree, void *out,
                                 const void *const *in, size_t count, co_dtype dtype)
{
    co_request *request = NULL;
    co_status st = co_comm_itree_allreduce(&request, comm, tree, out, in, count, dtype);

    return blocking_finish(st, request);
}

co_status co_comm_reduce_scatter(co_comm *comm, void *out, const void *in, size_t count,
                                 co_dtype dtype, co_reduce_op op)
{
    co_request *request = NULL;
    co_status st = co_comm_ireduce_scatter(&request, comm, out, in, count, dtype, op);

    return blocking_finish(st, request);
}

co_status co_comm_allgather(co_comm *comm, void *out, const void *in, size_t count, co_dtype dtype)
{
    co_request *request = NULL;
    co_status st = co_comm_iallgather(&request, comm, out, in, count, dtype);

    return blocking_finish(st, request);
}

co_status co_comm_gather(co_comm *comm, void *out, const void *in, size_t count, co_dtype dtype,
                         int root)
{
    co_request *request = NULL;
    co_status st = co_comm_igather(&request, comm, out, in, count, dtype, root);

    return blocking_finish(st, request);
}

co_status co_comm_scatter(co_comm *comm, void *out, const void *in, size_t count, co_dtype dtype,
                          int root)
{
    co_request *request = NULL;
    co_status st = co_comm_iscatter(&request, comm, out, in, count, dtype, root);

    return blocking_finish(st, request);
}

co_status co_comm_barrier(co_comm *comm)
{
    co_request *request = NULL;
    co_status st = co_comm_ibarrier(&request, comm);

    return blocking_finish(st, request);
}
