/*
 * pipeline.h - an all-reduce over several hosts, in pieces that pass through stages; its halves are
 * one piece each, and pass through the stages to the last exchange, or those from the first gather.
 *
 *   reduce    ranks of a host sum a piece; each gets a slice of the sum, or the first all of it
 *   exchange  on each level of hosts (levels.h): each rank with a slice receives its part of what
 *             it has from the others of its group, and sums these
 *   gather    and on each level, from the last to the first, receives the other parts
 *   spread    ranks of a host receive all slices
 *
 * Pieces enter each stage in posting order on every rank; stages use separate communicators or
 * tags, so that one may run ahead of another. An element is summed over the ranks of each host in
 * rank order, then over hosts, in the order of their first ranks, by groups: over the hosts of each
 * group of the first level, then over these groups, and so on. So its bits depend on the number of
 * hosts, and not on the size of pieces and messages. Where hosts send in half precision, terms are
 * rounded before each level, and the sum of more than two hosts once more at the end.
 */
#ifndef CO_COMM_MPI_PIPELINE_H
#define CO_COMM_MPI_PIPELINE_H

#include "comm/mpi/internal.h"
#include "comm/mpi/levels.h"

#define MPI_PIPE_PIECES 8
#define MPI_PIPE_BYTES  ((size_t)1 << 20) /* per piece */
#define MPI_PIPE_LINE   32                /* elements; slices and parts are whole lines */
#define MPI_PIPE_STAGES (2 * CO_LEVELS_MAX + 2)

typedef struct mpi_range {
    size_t begin, n; /* elements */
} mpi_range;

/* State of one piece on one rank. */
typedef struct mpi_piece {
    mpi_request *request;      /* borrowed */
    size_t at, n;              /* elements of the request */
    bool sliced;               /* each rank of a host has a slice; else the host's first rank has
                                  all */
    unsigned char *work;       /* this rank's slice of the result; NULL: none */
    const unsigned char *from; /* this host's contribution to it; may be `work` */
    size_t n_work;
    size_t each; /* of a half: elements of a rank's slice; 0: another operation */
    bool small;  /* the whole slice is exchanged, and nothing gathered */
    mpi_range range[CO_LEVELS_MAX + 1]; /* of `work`: that this rank has when a level begins */
    co_request *host;                   /* owned: in flight between ranks of a host; NULL: none */
    mpi_transfer *transfer;             /* owned: in flight between hosts */
    int n_transfer, arrived;            /* of them; the first ones have arrived */
    unsigned char *slice, *in;          /* owned, grown as needed */
    size_t slice_bytes, in_bytes;
    unsigned char *half; /* owned, grown as needed: `work` as it is sent, in half precision */
    size_t half_bytes;
    float *rest; /* what roundings of `work` have lost; NULL: not wanted */
} mpi_piece;

/* This rank's group on one level: hosts first, first + stride, ..., of which it is number `me`. */
typedef struct mpi_group {
    int first, stride, n, me;
} mpi_group;

typedef struct mpi_pipe {
    /* owned: ranks with the same index in each host; co_mpi->no_communicator: this rank has no
     * slice */
    mpi_communicator across;
    int levels; /* 0: no slice */
    mpi_group group[CO_LEVELS_MAX];
    int hosts, me;          /* of those; this one's number */
    int part;               /* this host's part of a half's slice, of as many */
    int slices;             /* ranks per host if all hosts have equally many, else 1 */
    size_t slice;           /* which of them is this rank's */
    bool equal;             /* they have */
    int first;              /* rank of this host */
    int n_member;           /* ranks of it, on that rank; else 0 */
    int *member;            /* owned: which */
    mpi_agree *spare_agree; /* owned: a list */
    int *index;             /* owned; (ranks): which slice of a half is whose */
    int *at;                /* (2, ranks), after it: room for offsets and lengths */
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

static inline const co_wire *co_mpi_piece_wire(const mpi_piece *piece)
{
    return piece->request->link.base.args.wire;
}

/* half.c: half precision between hosts. */
/* All that this rank brings to a sum has gone into that of its host. */
void co_mpi_half_begin(const mpi_piece *piece);
/* Round what this rank has when a level begins, into piece->half. */
co_status co_mpi_half_round(const mpi_pipe *pipe, mpi_piece *piece, int level);
/* Sum what a level has brought, of every host of the group, where it is: piece->in. */
void co_mpi_half_add(const mpi_pipe *pipe, mpi_piece *piece, int level);
/* piece->work is what all hosts have. */
void co_mpi_half_end(const mpi_pipe *pipe, const mpi_piece *piece);

/* sum_over_hosts.c: sums piece->work over hosts. */
/* Find this rank's groups, and make room for what is in flight. */
co_status co_mpi_across_open(mpi_pipe *pipe);
/* Which part of a new piece this rank has on each level. */
void co_mpi_across_lay_out(const mpi_pipe *pipe, mpi_piece *piece);
/* Sum what the level before has brought, and exchange on this one; level `levels`: only sum, and
   divide an average by `ranks`. */
co_status co_mpi_across_exchange(mpi_pipe *pipe, mpi_piece *piece, int level, int ranks);
co_status co_mpi_across_gather(mpi_pipe *pipe, mpi_piece *piece, int level);

#endif
