/*
 * pipeline.h - an all-reduce over several hosts, in pieces that pass through four stages; its
 * halves are one piece each, and pass through the first two, or the last two.
 *
 *   reduce    ranks of a host sum a piece; each gets a slice of the sum, or the first all of it
 *   exchange  each rank with a slice receives its part of that slice from all hosts, and sums these
 *   gather    and receives the other parts, which other hosts have summed
 *   spread    ranks of a host receive all slices
 *
 * Pieces enter each stage in posting order on every rank; stages use separate communicators, so
 * that one may run ahead of another. An element is summed over the ranks of each host in rank
 * order, then over hosts in the order of their first ranks, whatever the size of pieces and
 * messages.
 */
#ifndef CO_COMM_MPI_PIPELINE_H
#define CO_COMM_MPI_PIPELINE_H

#include "comm/mpi/internal.h"

#define MPI_PIPE_PIECES 8
#define MPI_PIPE_BYTES  ((size_t)1 << 20) /* per piece */
#define MPI_PIPE_LINE   32                /* elements; slices and parts are whole lines */
#define MPI_PIPE_STAGES 4

/* State of one piece on one rank. */
typedef struct mpi_piece {
    mpi_request *request;      /* borrowed */
    size_t at, n;              /* elements of the request */
    bool sliced;               /* each rank of a host has a slice; else the host's first rank has
                                  all */
    unsigned char *work;       /* this rank's slice of the result; NULL: none */
    const unsigned char *from; /* this host's contribution to it; may be `work` */
    size_t n_work;
    size_t each;               /* of a half: elements of a rank's slice; 0: another operation */
    bool small;                /* the whole slice is exchanged, and nothing gathered */
    co_request *host;          /* owned: in flight between ranks of a host; NULL: none */
    mpi_transfer data;         /* in flight between hosts */
    int *count;                /* (4, hosts) owned: offsets and lengths of parts, sent and
                                  received */
    unsigned char *slice, *in; /* owned, grown as needed */
    size_t slice_bytes, in_bytes;
} mpi_piece;

typedef struct mpi_pipe {
    /* owned: ranks with the same index in each host; co_mpi->no_communicator: this rank has no
     * slice */
    mpi_communicator exchange, gather;
    int hosts, me; /* of those */
    int slices;    /* ranks per host if all hosts have equally many, else 1 */
    bool equal;    /* they have */
    int *index;    /* owned; (ranks): which slice of a half is whose */
    int *at;       /* (2, ranks), after it: room for offsets and lengths */
    /* The next piece to enter each stage, and to leave the last; piece i is *order[i %
       MPI_PIPE_PIECES]. */
    uint64_t next[MPI_PIPE_STAGES + 1];
    mpi_piece *order[MPI_PIPE_PIECES];
    mpi_piece *spare[MPI_PIPE_PIECES]; /* a stack: the last used has its buffers in the cache */
    int n_spare;
    mpi_piece piece[MPI_PIPE_PIECES];
} mpi_pipe;

static inline size_t co_mpi_piece_esize(const mpi_piece *piece)
{
    return co_dtype_size(piece->request->link.base.args.dtype);
}

/* sum_over_hosts.c: sums piece->work over hosts. */
co_status co_mpi_across_exchange(mpi_pipe *pipe, mpi_piece *piece);
/* Sum what was exchanged; for an average, divide by `ranks`. */
void co_mpi_across_add(const mpi_pipe *pipe, const mpi_piece *piece, int ranks);
co_status co_mpi_across_gather(mpi_pipe *pipe, mpi_piece *piece);

#endif
