/*
 * one_host.c - a communicator over MPI whose ranks are all on one host: MPI starts and ends them,
 * and every operation uses the communicator over their shared memory.
 *
 * Requests belong to that communicator, which therefore also waits for them.
 */
#include "comm/mpi/internal.h"

static co_comm *one_host_ranks(co_comm *comm)
{
    return ((mpi_comm *)comm)->host.ranks;
}

static co_status one_host_post(co_request **request, co_comm *comm, const co_coll_args *args)
{
    co_comm *ranks = one_host_ranks(comm);

    return ranks->ops->post(request, ranks, args);
}

static co_status one_host_run(co_comm *comm, const co_coll_args *args)
{
    co_comm *ranks = one_host_ranks(comm);

    return ranks->ops->run(ranks, args);
}

static co_status one_host_progress(co_comm *comm)
{
    co_comm *ranks = one_host_ranks(comm);

    return ranks->ops->progress(ranks);
}

static co_status one_host_window(void **base, co_comm *comm, size_t bytes)
{
    co_comm *ranks = one_host_ranks(comm);

    return ranks->ops->window(base, ranks, bytes);
}

static void one_host_free_window(co_comm *comm, void *base, size_t bytes)
{
    co_comm *ranks = one_host_ranks(comm);

    ranks->ops->free_window(ranks, base, bytes);
}

static void one_host_fail(co_comm *comm, int rank, co_status status, const char *cause)
{
    co_comm *ranks = one_host_ranks(comm);

    ranks->ops->fail(ranks, rank, status, cause);
}

void co_mpi_hand_over(mpi_comm *c)
{
    static const co_comm_ops ops = {
        .name = "mpi",
        .post = one_host_post,
        .run = one_host_run,
        .progress = one_host_progress,
        .split = co_mpi_split,
        .set_timeout = co_mpi_set_timeout,
        .window = one_host_window,
        .free_window = one_host_free_window,
        .alloc = co_mpi_alloc,
        .free = co_mpi_free,
        .fail = one_host_fail,
        .abort = co_mpi_abort,
        .destroy = co_mpi_destroy,
    };

    c->base.ops = &ops;
    c->host.whole = true;
}
