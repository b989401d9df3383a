/* internal.h - one operation over MPI: its life cycle and its data. */
#ifndef CO_COMM_MPI_INTERNAL_H
#define CO_COMM_MPI_INTERNAL_H

#include "comm/mpi/calls.h"

#include "comm/comm_internal.h"

#define CO_MPI_TAG_HEADER 1
#define CO_MPI_TAG_DATA   2
#define CO_MPI_TAG_NOTE   3

/* sequence, collective, type, reduction, root, count; then their complements, so that one maximum
   finds both the largest and the smallest. */
#define CO_MPI_FIELDS 6

/* Ranks of a communicator that share memory. */
typedef struct mpi_host {
    struct co_shm *shm; /* owned; of the world's communicator alone */
    co_comm *ranks;     /* owned: those on this host, in order; NULL: all communicate over MPI */
    co_comm *spread;    /* owned: the same ones; NULL: none needed */
    co_comm *local; /* owned: the same ones, for callers of co_comm_local; of the world alone; NULL:
                       none */
    int hosts;      /* 0: not counted */
    bool whole;     /* all ranks are on this host: `ranks` does all operations */
} mpi_host;

typedef struct mpi_comm {
    co_comm base;
    /* owned. Descriptors are compared as soon as they are posted, data moves later: on one
       communicator ranks could start the two in different orders. */
    mpi_communicator check, data;
    int world_rank;
    co_comm_cause cause;
    uint32_t sequence;
    co_comm_queue collectives;
    co_comm_queue finished;          /* complete, but not yet reported */
    co_comm_queue *sends, *receives; /* owned, [size] */
    int pending;                     /* messages */
    struct mpi_tree *tree;           /* owned; buffers of a tree all-reduce; NULL: none so far */
    /* For each rank the collective that it has reported to wait in; owned, [size], sequence + 1. */
    uint32_t *waiting, note[2];
    /* For each rank the collective before which it has reported to save; [size], after `waiting`,
       sequence + 1. */
    uint32_t *saving, saving_note[2];
    int notes_sent, notes_read;
    mpi_operator half[2][CO_REDUCE_OP_COUNT]; /* owned; reduce_ops.c: of BF16 and F16 */
    mpi_host host;
    struct mpi_pipe *pipe; /* owned; all-reduces over several hosts; NULL: there is one */
    struct mpi_progress_thread *progress_thread; /* owned; NULL: none */
} mpi_comm;

typedef struct mpi_request {
    co_comm_link link;
    co_coll_descriptor descriptor;
    mpi_transfer check, data; /* co_mpi->no_transfer: not in flight */
    uint64_t mine[2 * CO_MPI_FIELDS], most[2 * CO_MPI_FIELDS];
    bool checked, noted;
    uint64_t since_ns; /* time of this rank's first unsuccessful poll */
    size_t moved;      /* elements done, of co_mpi_elements */
    size_t piece;      /* elements in flight */
    int stage;         /* of the piece */
    size_t entered;    /* elements of an all-reduce that have entered the pipeline */
} mpi_request;

/* load.c: the calls of the MPI in use; NULL until co_mpi_load has succeeded. */
extern const co_mpi_calls *co_mpi;
/* CO_E_UNSUPPORTED with the remedy where there is none. */
co_status co_mpi_load(void);

co_status co_mpi_check(int code, const char *what);
/* check.c: what ranks exchange about an operation, [2 * CO_MPI_FIELDS]. */
void co_mpi_describe_fields(uint64_t *out, const co_coll_descriptor *d);
/* Whether descriptors have been compared; they are equal then. */
co_status co_mpi_compare(bool *arrived, mpi_comm *c, mpi_request *request);

/* Advance all operations; completed ones go to c->finished. Locked. */
co_status co_mpi_advance(mpi_comm *c);

/* progress_thread.c: only one thread at a time calls MPI, for all communicators. */
void co_mpi_lock(void);
void co_mpi_unlock(void);
/* Of the world's communicator. */
co_status co_mpi_progress_thread_open(mpi_comm *c);
void co_mpi_progress_thread_close(mpi_comm *c);
/* An operation has begun; locked. */
void co_mpi_progress_thread_wake(mpi_comm *c, const co_coll_args *args);

/* Elements that an operation moves in pieces: `count`, or that for each block; 0: none. */
size_t co_mpi_elements(const mpi_comm *c, const co_coll_args *args);
/* Start moving the next piece; sets request->piece. */
co_status co_mpi_start_piece(mpi_comm *c, mpi_request *request);
/* The data in flight has arrived; *done: that was the last stage of the piece. */
co_status co_mpi_end_stage(bool *done, mpi_comm *c, mpi_request *request);
/* After the last piece. */
void co_mpi_finish_data(const mpi_comm *c, const co_coll_args *args);

/* Make a buffer of malloc's at least `need` bytes long. */
co_status co_mpi_grow(unsigned char **buffer, size_t *bytes, size_t need);

mpi_type co_mpi_type(co_dtype dtype);

/* waiting_ranks.c: notify the others, once, when this rank has waited long in `request`. */
co_status co_mpi_note_waiting(mpi_comm *c, mpi_request *request);
/* The same for the next operation, for which this rank will be late. */
void co_mpi_note_saving(mpi_comm *c);
/* Receive what others have sent: c->waiting, c->saving. */
void co_mpi_read_notes(mpi_comm *c);
/* Receive all of them before the communicator is freed: a message to a freed one would turn up in
   the next one that gets the same identifier from MPI. Collective. */
void co_mpi_read_last_notes(mpi_comm *c);

/* reduce_ops.c: how MPI combines elements. MPI knows no half precision, so ours are made with
   the communicator. AVG is a sum here. */
co_status co_mpi_ops_create(mpi_comm *c);
void co_mpi_ops_free(mpi_comm *c);
mpi_operator co_mpi_op(const mpi_comm *c, co_dtype dtype, co_reduce_op op);

/* tree.c: a piece of n elements of a tree all-reduce, in two stages. */
co_status co_mpi_tree_start(mpi_comm *c, mpi_request *request, int n);
co_status co_mpi_tree_end_stage(bool *done, mpi_comm *c, mpi_request *request);
void co_mpi_tree_free(mpi_comm *c);

/* hosts.c: for the world; for a communicator split off `c`, NULL where this rank is in none; both
   collective. */
co_status co_mpi_host_open(mpi_comm *c);
co_status co_mpi_host_split(mpi_comm *part, mpi_comm *c, int color, int key);
void co_mpi_host_close(mpi_comm *c);

/* one_host.c: its operations are those of `ranks`. */
void co_mpi_hand_over(mpi_comm *c);
/* In mpi.c, the same wherever ranks are. */
co_status co_mpi_split(co_comm **out, co_comm *comm, int color, int key);
void co_mpi_set_timeout(co_comm *comm);
void *co_mpi_alloc(co_comm *comm, size_t bytes);
bool co_mpi_free(co_comm *comm, void *data, size_t bytes);
void co_mpi_abort(co_comm *comm, co_status status, const char *cause);
void co_mpi_destroy(co_comm *comm);

/* end_mpiexec.c: the job is about to be aborted. */
void co_mpi_end_launcher(void);

/* pipeline.c: all-reduces over several hosts. */
co_status co_mpi_pipe_open(mpi_comm *c);
void co_mpi_pipe_close(mpi_comm *c, bool alive);
/* Lets all posted ones advance; their `moved` says how far they are. */
co_status co_mpi_pipe_progress(mpi_comm *c);

#endif
