/*
 * pipeline.c - runs pieces of all-reduces through the stages of pipeline.h, several at a time.
 *
 * A rank advances them when it posts, waits or calls co_comm_progress. MPI may move data in
 * between, so more in flight means less to wait for. Does not know which MPI calls move a slice
 * (sum_over_hosts.c).
 */
#include "comm/mpi/pipeline.h"

#include "comm/queued.h"
#include "core/mem.h"

/* Then come, for each level, its exchange, for each its gather, the spread, and the end. */
enum { PIPE_REDUCE, PIPE_EXCHANGE };

static int pipe_gather_stage(const mpi_pipe *p)
{
    return PIPE_EXCHANGE + p->levels;
}

static int pipe_spread_stage(const mpi_pipe *p)
{
    return PIPE_EXCHANGE + 2 * p->levels;
}

static int pipe_end_stage(const mpi_pipe *p)
{
    return pipe_spread_stage(p) + 1;
}

/* ---- creation ---- */

/* Hosts are ordered by their first rank, the same on all ranks. */
static co_status pipe_open_across(mpi_pipe *p, mpi_comm *c)
{
    const int local = c->host.ranks ? c->host.ranks->rank : 0;
    int size[2], most[2];

    size[0] = c->host.ranks ? c->host.ranks->size : 1;
    size[1] = -size[0];
    CO_TRY(co_mpi_check(co_mpi->allreduce(size, most, 2, co_mpi->i32, co_mpi->max, c->check),
                        "counting"));
    p->equal = most[0] == -most[1];
    p->slices = p->equal ? size[0] : 1;
    p->slice = p->equal ? (size_t)local : 0;
    CO_TRY(co_mpi_agree_open(c));
    CO_TRY(co_mpi_check(
        co_mpi->comm_split(c->check, local < p->slices ? local : -1, p->first, &p->across),
        "making a communicator"));
    return p->across == co_mpi->no_communicator ? CO_OK : co_mpi_across_open(p);
}

/* Slices are in the order in which the stages cut a buffer: by ranks of a host, then by hosts,
   level by level. */
static co_status pipe_find_slices(mpi_pipe *p, const mpi_comm *c)
{
    const size_t ranks = (size_t)c->base.size;
    const int local = c->host.ranks ? c->host.ranks->rank : 0;

    p->index = co_calloc(3 * ranks, sizeof(*p->index));
    if (!p->index)
        return CO_E_NOMEM;
    p->at = p->index + ranks;
    p->index[c->base.rank] = p->equal ? local * p->hosts + p->part : c->base.rank;
    return co_mpi_check(co_mpi->allreduce(co_mpi->in_place, p->index, c->base.size, co_mpi->i32,
                                          co_mpi->sum, c->check),
                        "numbering slices");
}

int co_mpi_slice_index(const co_comm *comm, int rank)
{
    const mpi_pipe *p = ((const mpi_comm *)comm)->pipe;

    return p ? p->index[rank] : rank;
}

/* Where hosts have different numbers of ranks all is added up, and MPI gathers. */
bool co_mpi_is_piped(const mpi_comm *c, const co_coll_args *args)
{
    return args->coll == CO_COLL_ALLREDUCE || args->coll == CO_COLL_REDUCE_SLICES ||
           (args->coll == CO_COLL_GATHER_SLICES && c->pipe->equal);
}

co_status co_mpi_pipe_open(mpi_comm *c)
{
    mpi_pipe *p;

    if (c->host.whole)
        return CO_OK;
    p = c->pipe = co_calloc(1, sizeof(*p));
    if (!p)
        return CO_E_NOMEM;
    p->across = co_mpi->no_communicator;
    CO_TRY(pipe_open_across(p, c));
    for (int i = 0; i < MPI_PIPE_PIECES; i++)
        p->spare[p->n_spare++] = &p->piece[i];
    return pipe_find_slices(p, c);
}

void co_mpi_pipe_close(mpi_comm *c, bool alive)
{
    mpi_pipe *p = c->pipe;

    if (!p)
        return;
    for (int i = 0; i < MPI_PIPE_PIECES; i++)
        co_request_destroy(p->piece[i].host);
    c->pipe = NULL;
    if (!alive) /* MPI may still write to its buffers */
        return;
    for (int i = 0; i < MPI_PIPE_PIECES; i++) {
        co_free(p->piece[i].transfer);
        co_free(p->piece[i].slice);
        co_free(p->piece[i].in);
        co_free(p->piece[i].half);
    }
    co_mpi_agree_close(p);
    co_free(p->index);
    if (p->across != co_mpi->no_communicator)
        co_mpi->comm_free(&p->across);
    co_free(p);
}

/* ---- between ranks of a host ---- */

static const co_coll_args *pipe_args(const mpi_piece *piece)
{
    return &piece->request->link.base.args;
}

static unsigned char *pipe_out(const mpi_piece *piece)
{
    return (unsigned char *)pipe_args(piece)->out + piece->at * co_mpi_piece_esize(piece);
}

static const unsigned char *pipe_in(const mpi_piece *piece)
{
    return (const unsigned char *)pipe_args(piece)->in + piece->at * co_mpi_piece_esize(piece);
}

/* An average is a sum until the end. */
static co_reduce_op pipe_op(const mpi_piece *piece)
{
    return pipe_args(piece)->op == CO_AVG ? CO_SUM : pipe_args(piece)->op;
}

/* One half between the ranks of a host: their slices are those of as many hosts each. */
static co_status pipe_host_half(mpi_comm *c, mpi_piece *piece, co_comm *ranks)
{
    co_coll_args args = *pipe_args(piece);

    args.each *= (size_t)c->pipe->hosts;
    args.op = pipe_op(piece);
    return co_comm_enqueue(&piece->host, ranks, &args);
}

/* The slice of this rank among those of its host is worked on where it is. */
static co_status pipe_begin_half(mpi_comm *c, mpi_piece *piece)
{
    co_comm *ranks = c->host.ranks;
    const size_t each = piece->each * (size_t)c->pipe->hosts;
    size_t begin;

    piece->n_work = co_comm_slice(&begin, piece->n, each, ranks ? ranks->rank : 0);
    piece->work = pipe_out(piece) + begin * co_mpi_piece_esize(piece);
    piece->from = piece->work;
    return ranks && pipe_args(piece)->coll == CO_COLL_REDUCE_SLICES
               ? pipe_host_half(c, piece, ranks)
               : CO_OK;
}

static co_status pipe_reduce(mpi_comm *c, mpi_piece *piece)
{
    const co_dtype dtype = pipe_args(piece)->dtype;
    const size_t bytes = piece->n * co_mpi_piece_esize(piece);
    co_comm *ranks = c->host.ranks;

    if (piece->each)
        return pipe_begin_half(c, piece);
    if (!ranks) {
        piece->work = pipe_out(piece);
        piece->from = pipe_in(piece);
        return CO_OK;
    }
    if (piece->sliced) {
        CO_TRY(co_mpi_grow(&piece->slice, &piece->slice_bytes, bytes / (size_t)ranks->size));
        piece->from = piece->work = piece->slice;
        return co_comm_ireduce_scatter(&piece->host, ranks, piece->work, pipe_in(piece),
                                       piece->n_work, dtype, pipe_op(piece));
    }
    piece->from = piece->work = ranks->rank == 0 ? pipe_out(piece) : NULL;
    return co_comm_ireduce(&piece->host, ranks, piece->work, pipe_in(piece), piece->n, dtype,
                           pipe_op(piece), 0);
}

static co_status pipe_spread(mpi_comm *c, mpi_piece *piece)
{
    const co_dtype dtype = pipe_args(piece)->dtype;

    if (!c->host.ranks)
        return CO_OK;
    if (piece->each)
        return pipe_host_half(c, piece, c->host.spread);
    if (piece->sliced)
        return co_comm_iallgather(&piece->host, c->host.spread, pipe_out(piece), piece->work,
                                  piece->n_work, dtype);
    return co_comm_ibcast(&piece->host, c->host.spread, pipe_out(piece), piece->n, dtype, 0);
}

/* ---- stages ---- */

/* The oldest request with pieces that can enter the pipeline; NULL: none. */
static co_status pipe_candidate(mpi_request **out, mpi_comm *c)
{
    mpi_request *r = (mpi_request *)c->collectives.head;
    bool arrived;

    *out = NULL;
    while (r && co_mpi_is_piped(c, &r->link.base.args) && r->entered == r->link.base.args.count)
        r = (mpi_request *)r->link.next;
    if (!r || !co_mpi_is_piped(c, &r->link.base.args))
        return CO_OK;
    CO_TRY(co_mpi_compare(&arrived, c, r));
    if (arrived)
        *out = r;
    return CO_OK;
}

/* All slices have equal length; the remainder is a piece by itself. */
static void pipe_cut(mpi_piece *piece, const mpi_pipe *p, mpi_request *r)
{
    const co_coll_args *args = &r->link.base.args;
    const size_t unit = (size_t)p->slices * MPI_PIPE_LINE, left = args->count - r->entered;
    const size_t most = MPI_PIPE_BYTES / co_dtype_size(args->dtype);

    piece->request = r;
    piece->at = r->entered;
    piece->each = p->equal ? args->each : 0;
    piece->n = left < most || piece->each ? left : most;
    piece->sliced = p->slices > 1 && piece->n >= unit && !piece->each;
    if (piece->sliced)
        piece->n = piece->n / unit * unit;
    piece->n_work = piece->sliced ? piece->n / (size_t)p->slices : piece->n;
    piece->rest =
        args->wire && args->wire->rest
            ? args->wire->rest + piece->at + (piece->sliced ? p->slice * piece->n_work : 0)
            : NULL;
    r->entered += piece->n;
}

static mpi_piece *pipe_piece(mpi_pipe *p, int stage)
{
    return p->order[p->next[stage] % MPI_PIPE_PIECES];
}

static co_status pipe_enter(bool *moved, mpi_comm *c)
{
    mpi_pipe *p = c->pipe;
    mpi_request *r;

    if (p->n_spare == 0)
        return CO_OK;
    CO_TRY(pipe_candidate(&r, c));
    if (!r)
        return CO_OK;
    p->order[p->next[PIPE_REDUCE] % MPI_PIPE_PIECES] = p->spare[--p->n_spare];
    pipe_cut(pipe_piece(p, PIPE_REDUCE), p, r);
    CO_TRY(pipe_reduce(c, pipe_piece(p, PIPE_REDUCE)));
    co_mpi_across_lay_out(p, pipe_piece(p, PIPE_REDUCE));
    p->next[PIPE_REDUCE]++;
    *moved = true;
    return CO_OK;
}

/* Whether the previous stage's operations are complete. */
static co_status pipe_is_free(bool *is_free, mpi_comm *c, mpi_piece *piece)
{
    *is_free = true;
    if (piece->host) {
        CO_TRY(co_request_test(is_free, piece->host));
        if (!*is_free)
            return CO_OK;
        co_request_destroy(piece->host);
        piece->host = NULL;
    }
    for (; piece->arrived < piece->n_transfer; piece->arrived++, c->arrivals++) {
        int there = 1;

        CO_TRY(co_mpi_check(co_mpi->test(&piece->transfer[piece->arrived], &there), "allreduce"));
        *is_free = there;
        if (!there)
            return CO_OK;
    }
    return CO_OK;
}

/* A half does one of the two, any other operation both. */
static bool pipe_sums(const mpi_piece *piece)
{
    return !piece->each || pipe_args(piece)->coll == CO_COLL_REDUCE_SLICES;
}

static bool pipe_gathers(const mpi_piece *piece)
{
    return !piece->each || pipe_args(piece)->coll == CO_COLL_GATHER_SLICES;
}

/* What the last exchange has brought is added up where the first gather starts. */
static co_status pipe_across(mpi_comm *c, mpi_piece *piece, int stage)
{
    mpi_pipe *p = c->pipe;
    const int gather = pipe_gather_stage(p);

    if (stage <= gather && pipe_sums(piece))
        CO_TRY(co_mpi_across_exchange(p, piece, stage - PIPE_EXCHANGE, c->base.size));
    if (stage < gather || !pipe_gathers(piece))
        return CO_OK;
    return co_mpi_across_gather(p, piece, pipe_spread_stage(p) - 1 - stage);
}

static co_status pipe_start(mpi_comm *c, mpi_piece *piece, int stage)
{
    mpi_pipe *p = c->pipe;

    piece->n_transfer = piece->arrived = 0;
    if (stage == PIPE_EXCHANGE && c->host.ranks)
        co_mpi_half_begin(piece);
    if (stage < pipe_spread_stage(p))
        return piece->work ? pipe_across(c, piece, stage) : CO_OK;
    if (stage == pipe_spread_stage(p) && piece->work)
        co_mpi_half_end(p, piece);
    if (stage == pipe_spread_stage(p))
        return pipe_gathers(piece) ? pipe_spread(c, piece) : CO_OK;
    piece->request->moved += piece->n;
    p->spare[p->n_spare++] = piece;
    return CO_OK;
}

static co_status pipe_advance(bool *moved, mpi_comm *c, int stage)
{
    mpi_pipe *p = c->pipe;
    bool is_free;

    if (p->next[stage] == p->next[stage - 1])
        return CO_OK;
    CO_TRY(pipe_is_free(&is_free, c, pipe_piece(p, stage)));
    if (!is_free)
        return CO_OK;
    CO_TRY(pipe_start(c, pipe_piece(p, stage), stage));
    p->next[stage]++;
    *moved = true;
    return CO_OK;
}

co_status co_mpi_pipe_progress(mpi_comm *c)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (int stage = pipe_end_stage(c->pipe); stage > PIPE_REDUCE; stage--)
            CO_TRY(pipe_advance(&moved, c, stage));
        CO_TRY(pipe_enter(&moved, c));
    }
    return CO_OK;
}
