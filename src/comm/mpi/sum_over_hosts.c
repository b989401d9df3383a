/*
 * sum_over_hosts.c - sums a slice over hosts, level by level: each host of a group sums a part of
 * it for all, in host order; small slices are summed by every host.
 *
 * MPI's own reductions choose their order by size and number of ranks, so they are not used; the
 * exchange moves as many bytes as the best of them. Does not know where slices come from.
 */
#include <string.h>

#include "comm/mpi/pipeline.h"
#include "comm/reduce.h"
#include "core/mem.h"

#define ACROSS_SMALL                                                                               \
    ((size_t)16 << 10) /* bytes received on a level, up to which a single exchange is faster */
#define ACROSS_MESSAGE                                                                             \
    ((size_t)60 << 10) /* bytes; Open MPI sends up to 64 KiB over TCP, with its header, at once.   \
                          For more a host asks and is asked, behind all that is on its way */
#define ACROSS_ENV "COHORT_HOSTS_PER_LEVEL" /* at most so many join on a level */

/* ---- groups ---- */

/* Most messages of a piece in flight: each part is rounded up to whole ones. */
static size_t sum_messages(const mpi_pipe *pipe)
{
    return 2 * ((size_t)pipe->group[0].n + MPI_PIPE_BYTES / ACROSS_MESSAGE + 1);
}

/* Into as many parts levels after this one divide what a host has. */
static int sum_parts(const mpi_pipe *pipe, int level)
{
    return pipe->hosts / pipe->group[level].stride / pipe->group[level].n;
}

co_status co_mpi_across_open(mpi_pipe *pipe)
{
    int most, stride = 1;
    co_levels levels;

    CO_TRY(co_mpi_test_number(&most, ACROSS_ENV, 2));
    co_mpi->comm_size(pipe->across, &pipe->hosts);
    co_mpi->comm_rank(pipe->across, &pipe->me);
    co_levels_find(&levels, pipe->hosts, most);
    pipe->levels = levels.n;
    for (int k = 0; k < levels.n; stride *= levels.factor[k++]) {
        const int i = pipe->me / stride % levels.factor[k];

        pipe->group[k] = (mpi_group){pipe->me - i * stride, stride, levels.factor[k], i};
        pipe->part += i * sum_parts(pipe, k);
    }
    for (int i = 0; i < MPI_PIPE_PIECES; i++) {
        pipe->piece[i].transfer = co_calloc(sum_messages(pipe), sizeof(*pipe->piece[i].transfer));
        if (!pipe->piece[i].transfer)
            return CO_E_NOMEM;
    }
    return CO_OK;
}

/* Elements of a part of n parts of a range, in whole lines. */
static size_t sum_each(size_t range, int n)
{
    const size_t lines = (range + MPI_PIPE_LINE - 1) / MPI_PIPE_LINE;

    return (lines + (size_t)n - 1) / (size_t)n * MPI_PIPE_LINE;
}

/* What member i of this rank's group has after a level. */
static mpi_range sum_range(const mpi_pipe *pipe, const mpi_piece *piece, int level, int i)
{
    const mpi_range whole = piece->range[level];
    const size_t each = piece->each ? piece->each * (size_t)sum_parts(pipe, level)
                                    : sum_each(whole.n, pipe->group[level].n);
    const size_t from = (size_t)i * each < whole.n ? (size_t)i * each : whole.n;

    if (piece->small)
        return whole;
    return (mpi_range){whole.begin + from, whole.n - from < each ? whole.n - from : each};
}

/* Type of what is sent. */
static co_dtype sum_dtype(const mpi_piece *piece)
{
    const co_wire *wire = co_mpi_piece_wire(piece);

    return wire ? wire->dtype : piece->request->link.base.args.dtype;
}

static size_t sum_esize(const mpi_piece *piece)
{
    return co_dtype_size(sum_dtype(piece));
}

/* Two hosts send as many bytes either way; at once, a sum in half precision is rounded once. */
void co_mpi_across_lay_out(const mpi_pipe *pipe, mpi_piece *piece)
{
    const size_t bytes = piece->n_work * sum_esize(piece);

    piece->small = !piece->each && (bytes * (size_t)pipe->group[0].n <= ACROSS_SMALL ||
                                    (co_mpi_piece_wire(piece) && pipe->hosts <= 2));
    piece->range[0] = (mpi_range){0, piece->n_work};
    for (int k = 0; k < pipe->levels; k++)
        piece->range[k + 1] = sum_range(pipe, piece, k, pipe->group[k].me);
}

/* ---- messages ---- */

static mpi_type sum_type(const mpi_piece *piece)
{
    return co_mpi_type(sum_dtype(piece));
}

/* Elements of a message. A half, which is one piece however long, is not cut. */
static size_t sum_message(const mpi_piece *piece)
{
    return piece->n_work * sum_esize(piece) > MPI_PIPE_BYTES ? piece->n_work
                                                             : ACROSS_MESSAGE / sum_esize(piece);
}

/* Levels and directions have tags of their own. Nothing is sent where there are no elements. */
static co_status sum_receive(const mpi_pipe *pipe, mpi_piece *piece, unsigned char *to, size_t n,
                             int level, int from, int tag)
{
    const mpi_group *g = &pipe->group[level];
    const size_t most = sum_message(piece), esize = sum_esize(piece);

    for (size_t at = 0; at < n; at += most)
        CO_TRY(co_mpi_check(co_mpi->irecv(to + at * esize, (int)(n - at < most ? n - at : most),
                                          sum_type(piece), g->first + from * g->stride, tag,
                                          pipe->across, &piece->transfer[piece->n_transfer++]),
                            "allreduce"));
    return CO_OK;
}

static co_status sum_send(const mpi_pipe *pipe, mpi_piece *piece, const unsigned char *data,
                          size_t n, int level, int to, int tag)
{
    const mpi_group *g = &pipe->group[level];
    const size_t most = sum_message(piece), esize = sum_esize(piece);

    for (size_t at = 0; at < n; at += most)
        CO_TRY(co_mpi_check(co_mpi->isend(data + at * esize, (int)(n - at < most ? n - at : most),
                                          sum_type(piece), g->first + to * g->stride, tag,
                                          pipe->across, &piece->transfer[piece->n_transfer++]),
                            "allreduce"));
    return CO_OK;
}

static const unsigned char *sum_data(const mpi_piece *piece, int level, mpi_range r)
{
    const unsigned char *data = co_mpi_piece_wire(piece) ? piece->half
                                : level == 0             ? piece->from
                                                         : piece->work;

    return data + r.begin * sum_esize(piece);
}

/* Data from member i: of the part that this rank sums. */
static unsigned char *sum_in(const mpi_piece *piece, int level, int i)
{
    return piece->in + (size_t)i * piece->range[level + 1].n * sum_esize(piece);
}

/* All receives, then all sends, each host beginning with the next one. */
static co_status sum_exchange(mpi_pipe *pipe, mpi_piece *piece, int level)
{
    const mpi_group *g = &pipe->group[level];
    const size_t mine = piece->range[level + 1].n;
    const int tag = 2 * level;

    CO_TRY(co_mpi_grow(&piece->in, &piece->in_bytes, mine * (size_t)g->n * sum_esize(piece)));
    for (int k = 1; k < g->n; k++) {
        const int i = (g->me + g->n - k) % g->n;

        CO_TRY(sum_receive(pipe, piece, sum_in(piece, level, i), mine, level, i, tag));
    }
    for (int k = 1; k < g->n; k++) {
        const int i = (g->me + k) % g->n;
        const mpi_range r = sum_range(pipe, piece, level, i);

        CO_TRY(sum_send(pipe, piece, sum_data(piece, level, r), r.n, level, i, tag));
    }
    return CO_OK;
}

co_status co_mpi_across_gather(mpi_pipe *pipe, mpi_piece *piece, int level)
{
    const mpi_group *g = &pipe->group[level];
    const mpi_range mine = piece->range[level + 1];
    unsigned char *data = co_mpi_piece_wire(piece) ? piece->half : piece->work;
    const size_t esize = sum_esize(piece);
    const int tag = 2 * level + 1;

    if (piece->small)
        return CO_OK;
    for (int k = 1; k < g->n; k++) {
        const int i = (g->me + g->n - k) % g->n;
        const mpi_range r = sum_range(pipe, piece, level, i);

        CO_TRY(sum_receive(pipe, piece, data + r.begin * esize, r.n, level, i, tag));
    }
    for (int k = 1; k < g->n; k++)
        CO_TRY(sum_send(pipe, piece, data + mine.begin * esize, mine.n, level, (g->me + k) % g->n,
                        tag));
    return CO_OK;
}

/* ---- sums ---- */

static void sum_add(const mpi_pipe *pipe, const mpi_piece *piece, int level)
{
    const co_coll_args *a = &piece->request->link.base.args;
    const mpi_group *g = &pipe->group[level];
    const mpi_range r = piece->range[level + 1];
    const unsigned char *own = sum_data(piece, level, r);
    const unsigned char *sum = g->me == 0 ? own : sum_in(piece, level, 0);
    unsigned char *out = piece->work + r.begin * co_mpi_piece_esize(piece);
    unsigned char *partial = g->me == 0 ? out : sum_in(piece, level, 0);

    for (int i = 1; i < g->n; i++) {
        unsigned char *to = i == g->n - 1 ? out : partial;

        co_reduce_pair(to, sum, i == g->me ? own : sum_in(piece, level, i), r.n, a->dtype, a->op);
        sum = to;
    }
    if (g->n == 1 && own != out)
        memcpy(out, own, r.n * co_mpi_piece_esize(piece));
}

co_status co_mpi_across_exchange(mpi_pipe *pipe, mpi_piece *piece, int level, int ranks)
{
    const co_coll_args *a = &piece->request->link.base.args;
    mpi_range r;

    if (level > 0 && co_mpi_piece_wire(piece))
        co_mpi_half_add(pipe, piece, level - 1);
    else if (level > 0)
        sum_add(pipe, piece, level - 1);
    if (co_mpi_piece_wire(piece))
        CO_TRY(co_mpi_half_round(pipe, piece, level));
    if (level < pipe->levels)
        return sum_exchange(pipe, piece, level);
    r = piece->range[level];
    if (a->op == CO_AVG)
        co_reduce_divide(piece->work + r.begin * co_mpi_piece_esize(piece), r.n, a->dtype, ranks);
    return CO_OK;
}
