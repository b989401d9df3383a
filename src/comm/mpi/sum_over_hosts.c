/*
 * sum_over_hosts.c - sums a slice over hosts: each host sums a part of it for all, in host order;
 * small slices are summed by every host.
 *
 * MPI's own reductions choose their order by size and number of ranks, so they are not used; the
 * exchange moves as many bytes as the best of them. Does not know where slices come from.
 */
#include <string.h>

#include "comm/mpi/pipeline.h"
#include "comm/reduce.h"

#define ACROSS_SMALL                                                                               \
    ((size_t)16 << 10) /* bytes received, up to which a single exchange is                         \
                          faster */

/* The part of a slice that host `host` sums. */
static int sum_part(int *begin, const mpi_pipe *pipe, const mpi_piece *piece, int host)
{
    const size_t hosts = (size_t)pipe->hosts, n = piece->n_work;
    const size_t lines =
        (n / hosts + (n % hosts != 0) + MPI_PIPE_LINE - 1) / MPI_PIPE_LINE * MPI_PIPE_LINE;
    const size_t each = piece->each ? piece->each : lines;
    const size_t from = (size_t)host * each < n ? (size_t)host * each : n;

    *begin = (int)from;
    return (int)(n - from < each ? n - from : each);
}

static mpi_type sum_type(const mpi_piece *piece)
{
    return co_mpi_type(piece->request->link.base.args.dtype);
}

static co_status sum_exchange_parts(mpi_pipe *pipe, mpi_piece *piece)
{
    int *out_at = piece->count, *out_n = out_at + pipe->hosts;
    int *in_at = out_n + pipe->hosts, *in_n = in_at + pipe->hosts, begin;
    const int mine = sum_part(&begin, pipe, piece, pipe->me);

    for (int h = 0, at = 0; h < pipe->hosts; h++) {
        out_n[h] = sum_part(&out_at[h], pipe, piece, h);
        if (h == pipe->me)
            out_n[h] = 0;
        in_n[h] = h == pipe->me ? 0 : mine;
        in_at[h] = at;
        at += in_n[h];
    }
    CO_TRY(co_mpi_grow(&piece->in, &piece->in_bytes,
                       (size_t)mine * (size_t)pipe->hosts * co_mpi_piece_esize(piece)));
    return co_mpi_check(co_mpi->ialltoallv(piece->from, out_n, out_at, sum_type(piece), piece->in,
                                           in_n, in_at, sum_type(piece), pipe->exchange,
                                           &piece->data),
                        "allreduce");
}

co_status co_mpi_across_exchange(mpi_pipe *pipe, mpi_piece *piece)
{
    const size_t all = piece->n_work * (size_t)pipe->hosts * co_mpi_piece_esize(piece);
    const int n = (int)piece->n_work;

    piece->small = all <= ACROSS_SMALL && !piece->each;
    if (!piece->small)
        return sum_exchange_parts(pipe, piece);
    CO_TRY(co_mpi_grow(&piece->in, &piece->in_bytes, all));
    return co_mpi_check(co_mpi->iallgather(piece->from, n, sum_type(piece), piece->in, n,
                                           sum_type(piece), pipe->exchange, &piece->data),
                        "allreduce");
}

/* Data from `host`: of the part that this one sums. */
static unsigned char *sum_in(const mpi_pipe *pipe, const mpi_piece *piece, int host)
{
    const int *in_at = piece->count + 2 * (size_t)pipe->hosts;
    const size_t at = piece->small ? (size_t)host * piece->n_work : (size_t)in_at[host];

    return piece->in + at * co_mpi_piece_esize(piece);
}

void co_mpi_across_add(const mpi_pipe *pipe, const mpi_piece *piece, int ranks)
{
    const co_coll_args *a = &piece->request->link.base.args;
    int begin = 0;
    const size_t n = piece->small ? piece->n_work : (size_t)sum_part(&begin, pipe, piece, pipe->me);
    const size_t at = (size_t)begin * co_mpi_piece_esize(piece);
    const unsigned char *own = piece->from + at;
    const unsigned char *sum = pipe->me == 0 ? own : sum_in(pipe, piece, 0);
    unsigned char *out = piece->work + at;
    unsigned char *partial = pipe->me == 0 ? out : sum_in(pipe, piece, 0);

    for (int h = 1; h < pipe->hosts; h++) {
        unsigned char *to = h == pipe->hosts - 1 ? out : partial;

        co_reduce_pair(to, sum, h == pipe->me ? own : sum_in(pipe, piece, h), n, a->dtype, a->op);
        sum = to;
    }
    if (pipe->hosts == 1 && own != out)
        memcpy(out, own, n * co_mpi_piece_esize(piece));
    if (a->op == CO_AVG)
        co_reduce_divide(out, n, a->dtype, ranks);
}

co_status co_mpi_across_gather(mpi_pipe *pipe, mpi_piece *piece)
{
    int *at = piece->count, *n = at + pipe->hosts; /* reused: the exchange is over */

    if (piece->small)
        return CO_OK;
    for (int h = 0; h < pipe->hosts; h++)
        n[h] = sum_part(&at[h], pipe, piece, h);
    return co_mpi_check(co_mpi->iallgatherv(co_mpi->in_place, 0, co_mpi->no_type, piece->work, n,
                                            at, sum_type(piece), pipe->gather, &piece->data),
                        "allreduce");
}
