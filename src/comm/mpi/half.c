/*
 * half.c - a sum over hosts whose terms are sent in half precision.
 *
 * What is to be sent is rounded, to piece->half, and terms are added up in float. Every host rounds
 * what it brings, whether it sends all of that or not, so that the bits do not depend on who sums.
 * Does not know who sends what to whom (sum_over_hosts.c).
 */
#include <cohort/ext/vector.h>

#include <string.h>

#include "comm/mpi/pipeline.h"

static uint16_t *half_data(const mpi_piece *piece, mpi_range r)
{
    return (uint16_t *)(void *)piece->half + r.begin;
}

static float *half_work(const mpi_piece *piece, mpi_range r)
{
    return (float *)(void *)piece->work + r.begin;
}

/* The sum of two hosts is exact in what they have sent. */
static bool half_is_rounded_last(const mpi_pipe *pipe)
{
    return pipe->hosts > 2;
}

/* Where hosts have made the same sum, the first of them keeps what its rounding loses. */
static bool half_keeps(const mpi_pipe *pipe, const mpi_piece *piece, int level)
{
    const int same = level == pipe->levels ? pipe->hosts : pipe->group[level].stride;

    return piece->rest && (!piece->small || pipe->me % same == 0);
}

void co_mpi_half_begin(const mpi_piece *piece)
{
    const co_wire *wire = co_mpi_piece_wire(piece);

    if (wire && wire->rest)
        memset(wire->rest + piece->at, 0, piece->n * sizeof(*wire->rest));
}

co_status co_mpi_half_round(const mpi_pipe *pipe, mpi_piece *piece, int level)
{
    const co_wire *wire = co_mpi_piece_wire(piece);
    const mpi_range r = piece->range[level];
    const float *x = level == 0 ? (const float *)(const void *)piece->from : half_work(piece, r);

    if (level == pipe->levels && !half_is_rounded_last(pipe))
        return CO_OK;
    CO_TRY(co_mpi_grow(&piece->half, &piece->half_bytes, piece->n_work * sizeof(uint16_t)));
    wire->vector->narrow(NULL, half_data(piece, r), x,
                         half_keeps(pipe, piece, level) ? piece->rest + r.begin : NULL, level > 0,
                         r.n, wire->dtype);
    return CO_OK;
}

void co_mpi_half_add(const mpi_pipe *pipe, mpi_piece *piece, int level)
{
    const co_wire *wire = co_mpi_piece_wire(piece);
    const mpi_group *g = &pipe->group[level];
    const mpi_range r = piece->range[level + 1];
    uint16_t *in = (uint16_t *)(void *)piece->in;

    memcpy(in + (size_t)g->me * r.n, half_data(piece, r), r.n * sizeof(*in));
    wire->vector->widen_sum(NULL, half_work(piece, r), in, r.n, g->n, r.n, wire->dtype);
}

void co_mpi_half_end(const mpi_pipe *pipe, const mpi_piece *piece)
{
    const co_wire *wire = co_mpi_piece_wire(piece);
    const mpi_range all = {0, piece->n_work};

    if (wire && half_is_rounded_last(pipe))
        wire->vector->widen_sum(NULL, half_work(piece, all), half_data(piece, all), 0, 1, all.n,
                                wire->dtype);
}
