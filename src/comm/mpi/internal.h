/* internal.h - one operation over MPI: its life cycle and its data. */
#ifndef CO_COMM_MPI_INTERNAL_H
#define CO_COMM_MPI_INTERNAL_H

#include <pthread.h>

#include "comm/mpi/calls.h"

#include "comm/comm_internal.h"
#include "comm/mpi/mpi.h"

#define CO_MPI_TAG_HEADER 1
#define CO_MPI_TAG_DATA   2
#define CO_MPI_TAG_NOTE   3

/* sequence, collective, type, reduction, root, count; then their complements, so that one maximum
   finds both maximum and minimum. */
#define CO_MPI_FIELDS 6

#define CO_MPI_NAME_WORDS 4 /* of a host's name, cut to 31 bytes */

/* Ranks of a communicator that share memory. */
typedef struct mpi_host {
    struct co_shm *shm; /* owned; of the world's communicator alone */
    co_comm *ranks;     /* owned: those on this host, in order; NULL: all communicate over MPI */
    co_comm *spread;    /* owned: the same ranks; NULL: not needed */
    co_comm *local;     /* owned: the same ranks, for co_comm_local; world only; NULL: none */
    int hosts;          /* 0: not counted */
    bool whole;         /* all ranks are on this host, and `ranks` does all operations */
} mpi_host;

typedef struct mpi_comm {
    co_comm base;
    /* Owned. Descriptors are compared as soon as they are posted, data is moved later. On a single
       communicator, ranks could start the two in different orders. */
    mpi_communicator check, data;
    int world_rank;
    co_comm_cause cause;
    uint32_t sequence;
    co_comm_queue collectives;
    co_comm_queue finished;          /* complete, not yet reported */
    co_comm_queue *sends, *receives; /* owned, [size] */
    int pending;                     /* messages */
    uint64_t arrivals;               /* also by the progress thread */
    struct mpi_tree *tree;           /* owned; buffers of tree all-reduces; NULL: none so far */
    /* For each rank, sequence + 1 of the collective in which it reported to wait; owned, [size]. */
    uint32_t *waiting, note[2];
    /* For each rank, sequence + 1 of the collective before which it reported to save; [size], after
       `waiting`. */
    uint32_t *saving, saving_note[2];
    uint64_t *saving_until_ns; /* [size], owned; reports are repeated: when the last one expires */
    uint64_t saving_due_ns;    /* when this rank's has to be repeated; 0: it does not save */
    int notes_sent, notes_read;
    uint64_t (*names)[CO_MPI_NAME_WORDS]; /* text: each rank's host; owned; world only, else NULL */
    mpi_operator half[2][CO_REDUCE_OP_COUNT]; /* owned; operations on BF16 and F16 (reduce_ops.c) */
    mpi_host host;
    struct mpi_pipe *pipe; /* owned; all-reduces over several hosts; NULL: one host */
    struct mpi_progress_thread *progress_thread; /* owned; NULL: none */
} mpi_comm;

typedef struct mpi_agree mpi_agree;

typedef struct mpi_request {
    co_comm_link link;
    co_coll_descriptor descriptor, header; /* header: of a message that arrives */
    mpi_transfer check, data;              /* co_mpi->no_transfer: not in flight */
    mpi_agree *agree;                      /* owned: what compares descriptors; NULL: nothing */
    uint64_t most[2 * CO_MPI_FIELDS];      /* of the ranks that it knows of */
    bool checked, noted;
    uint64_t since_ns; /* of this rank's first unsuccessful poll */
    size_t moved;      /* elements done, out of co_mpi_elements */
    size_t piece;      /* elements in flight */
    int stage;         /* of the piece */
    size_t entered;    /* elements that have entered the pipeline */
} mpi_request;

/* load.c: the calls of the MPI in use; NULL until co_mpi_load has succeeded. */
extern const co_mpi_calls *co_mpi;
/* CO_E_UNSUPPORTED with the remedy where there is none. */
co_status co_mpi_load(void);

/* init.c: load it, and initialise it unless the program has, within `ms` (CO_MPI_START_MS at
   least). */
co_status co_mpi_init(uint32_t ms);

/* limit.c: between begin and end, MPI is in a call that others have to answer. If that
   takes longer than `ms`, says so and ends the process with `exit_code`. `what` is borrowed. */
typedef struct co_mpi_limit {
    const char *what;
    uint32_t ms;
    int exit_code;
    bool watched, returned;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} co_mpi_limit;
void co_mpi_limit_begin(co_mpi_limit *limit, const char *what, uint32_t ms, int exit_code);
void co_mpi_limit_end(co_mpi_limit *limit);

co_status co_mpi_check(int code, const char *what);
/* check.c: fill in the fields that ranks exchange, [2 * CO_MPI_FIELDS]. */
void co_mpi_describe_fields(uint64_t *out, const co_coll_descriptor *d);
/* *arrived: descriptors have been compared, and are equal. */
co_status co_mpi_compare(bool *arrived, mpi_comm *c, mpi_request *request);
/* agree.c: for a communicator's pipe. Collective. */
co_status co_mpi_agree_open(mpi_comm *c);
void co_mpi_agree_close(struct mpi_pipe *pipe);
/* Send a collective's descriptor; *done: request->most is that of all ranks. */
co_status co_mpi_agree_begin(mpi_comm *c, mpi_request *request);
co_status co_mpi_agree_advance(bool *done, mpi_comm *c, mpi_request *request);
/* Compare those of collectives that wait for others. */
co_status co_mpi_agree_ahead(mpi_comm *c);

/* Advance all operations; completed ones go to c->finished. Call with the lock held. */
co_status co_mpi_advance(mpi_comm *c);

/* progress_thread.c: a lock over all communicators, so that one thread at a time calls MPI. */
void co_mpi_lock(void);
void co_mpi_unlock(void);
/* For the world's communicator. */
co_status co_mpi_progress_thread_open(mpi_comm *c);
void co_mpi_progress_thread_close(mpi_comm *c);
/* An operation was posted; something else is to be done. Call with the lock held. */
void co_mpi_progress_thread_post(mpi_comm *c, const co_coll_args *args);
void co_mpi_progress_thread_wake(mpi_comm *c);

/* Elements that an operation moves in pieces: `count`, or `count` per block; 0: none. */
size_t co_mpi_elements(const mpi_comm *c, const co_coll_args *args);
/* Start the next piece; sets request->piece. */
co_status co_mpi_start_piece(mpi_comm *c, mpi_request *request);
/* The data in flight has arrived; *done: it was the piece's last stage. */
co_status co_mpi_end_stage(bool *done, mpi_comm *c, mpi_request *request);
/* Call after the last piece. */
void co_mpi_finish_data(const mpi_comm *c, const co_coll_args *args);

/* Grow a buffer of core/mem.h to at least `need` bytes. */
co_status co_mpi_grow(unsigned char **buffer, size_t *bytes, size_t need);

mpi_type co_mpi_type(co_dtype dtype);

/* waiting_ranks.c: notify other ranks, once, that this rank has waited long in `request`. */
co_status co_mpi_note_waiting(mpi_comm *c, mpi_request *request);
/* Notify them that this rank saves and will be late for the next operation. */
void co_mpi_note_saving(mpi_comm *c);
/* For the progress thread: notify them again while that lasts, so that a lost host is told from a
   slow disk. */
void co_mpi_repeat_saving(mpi_comm *c);
/* Whether rank p saves before the operation with that number + 1, and does not wait in it yet, as
   far as is known. */
bool co_mpi_saves(const mpi_comm *c, int p, uint32_t next);
/* Receive such notes into c->waiting and c->saving. */
void co_mpi_read_notes(mpi_comm *c);
/* Receive all notes before the communicator is freed; otherwise they could arrive in the next
   communicator to which MPI gives the same identifier. Collective. */
void co_mpi_read_last_notes(mpi_comm *c);

/* reduce_ops.c: MPI operations. MPI knows no half precision, so each communicator creates ours. AVG
   is a sum here. */
co_status co_mpi_ops_create(mpi_comm *c);
void co_mpi_ops_free(mpi_comm *c);
mpi_operator co_mpi_op(const mpi_comm *c, co_dtype dtype, co_reduce_op op);

/* tree.c: a piece of n elements of a tree all-reduce, in two stages. */
co_status co_mpi_tree_start(mpi_comm *c, mpi_request *request, int n);
co_status co_mpi_tree_end_stage(bool *done, mpi_comm *c, mpi_request *request);
void co_mpi_tree_free(mpi_comm *c);

/* hosts.c: for tests, a number of at least `least` in the environment of all ranks; 0: none. */
co_status co_mpi_test_number(int *out, const char *variable, int least);
/* hosts.c: for the world; for a communicator `part` split from `c` (NULL if this rank is in none).
   Both are collective. */
co_status co_mpi_host_open(mpi_comm *c);
co_status co_mpi_host_split(mpi_comm *part, mpi_comm *c, int color, int key);
void co_mpi_host_close(mpi_comm *c);
/* Append " (n3)", the host of a rank, if known. */
void co_mpi_add_host(char *out, size_t size, const mpi_comm *c, int rank);

/* one_host.c: from now on, operations are those of c->host.ranks. */
void co_mpi_hand_over(mpi_comm *c);
/* mpi.c: used by both. */
co_status co_mpi_split(co_comm **out, co_comm *comm, int color, int key);
void co_mpi_set_timeout(co_comm *comm);
void *co_mpi_alloc(co_comm *comm, size_t bytes);
bool co_mpi_free(co_comm *comm, void *data, size_t bytes);
void co_mpi_abort(co_comm *comm, co_status status, const char *cause);
void co_mpi_destroy(co_comm *comm);

/* end_mpiexec.c: call before aborting the job. */
void co_mpi_end_launcher(void);

/* pipeline.c: all-reduces over several hosts, and their halves. */
bool co_mpi_is_piped(const mpi_comm *c, const co_coll_args *args);
int co_mpi_slice_index(const co_comm *comm, int rank);
co_status co_mpi_pipe_open(mpi_comm *c);
void co_mpi_pipe_close(mpi_comm *c, bool alive);
/* Advance all posted ones and their `moved`. */
co_status co_mpi_pipe_progress(mpi_comm *c);

#endif
