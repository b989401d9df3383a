/*
 * pipeline.h - an all-reduce over several hosts, as pieces on their way through four stages.
 *
 *   reduce    ranks of a host add up a piece; each gets a slice of the sum, or the first all of it
 *   exchange  who has a slice gets its part of it from all hosts, and adds them up
 *   gather    and gets the other parts, which others have added up
 *   spread    ranks of a host get all slices
 *
 * Pieces enter each stage in the order in which they were posted, on every rank; stages use
 * communicators of their own, so that one may run ahead of another. An element is added up over
 * the ranks of each host, in order, then over hosts in the order of their first ranks: that does
 * not depend on the size of pieces and messages.
 */
#ifndef CO_COMM_MPI_PIPELINE_H
#define CO_COMM_MPI_PIPELINE_H

#include "comm/mpi/internal.h"

#define MPI_PIPE_PIECES 8
#define MPI_PIPE_BYTES  ((size_t)1 << 20) /* of a piece */
#define MPI_PIPE_LINE   32                /* elements; slices and parts are whole lines */
#define MPI_PIPE_STAGES 4

/* State of one piece on one rank. */
typedef struct mpi_piece {
    mpi_request *request;      /* borrowed */
    size_t at, n;              /* elements of the request */
    bool sliced;               /* each rank of a host has a slice; else the first of each has all */
    unsigned char *work;       /* this rank's slice of the result; NULL: none */
    const unsigned char *from; /* and of this host's contribution; may be `work` */
    size_t n_work;
    bool small;                /* the slice is exchanged whole, and not gathered */
    co_request *host;          /* owned: in flight between ranks of a host; NULL: nothing */
    mpi_transfer data;         /* between hosts */
    int *count;                /* (4, hosts) owned: offsets and lengths of parts, out and in */
    unsigned char *slice, *in; /* owned, grown as needed */
    size_t slice_bytes, in_bytes;
} mpi_piece;

typedef struct mpi_pipe {
    /* owned: ranks with the same index in each host; co_mpi->no_communicator: this rank has no
     * slice */
    mpi_communicator exchange, gather;
    int hosts, me; /* of those */
    int slices;    /* ranks of each host if that is the same everywhere, else 1 */
    /* The piece that enters a stage next, and the one that leaves the last; piece i is
     *order[i % MPI_PIPE_PIECES]. */
    uint64_t next[MPI_PIPE_STAGES + 1];
    mpi_piece *order[MPI_PIPE_PIECES];
    mpi_piece *spare[MPI_PIPE_PIECES]; /* the last one used is on top: its buffers are in cache */
    int n_spare;
    mpi_piece piece[MPI_PIPE_PIECES];
} mpi_pipe;

static inline size_t co_mpi_piece_esize(const mpi_piece *piece)
{
    return co_dtype_size(piece->request->link.base.args.dtype);
}

/* sum_over_hosts.c: the stage of piece->work between hosts. */
co_status co_mpi_across_exchange(mpi_pipe *pipe, mpi_piece *piece);
/* What has been exchanged is added up, and divided by `ranks` for an average. */
void co_mpi_across_add(const mpi_pipe *pipe, const mpi_piece *piece, int ranks);
co_status co_mpi_across_gather(mpi_pipe *pipe, mpi_piece *piece);

#endif
