/* comm_internal.h - shared by transports: failure records, descriptors, queues, waiting. */
#ifndef CO_COMM_COMM_INTERNAL_H
#define CO_COMM_COMM_INTERNAL_H

#include <cohort/ext/comm.h>

#include "comm/watch.h"

#define CO_COMM_CAUSE_SIZE   1900 /* error messages are cut at 2,000 bytes */
#define CO_COMM_TIMEOUT_MS   300000
#define CO_COMM_DESCRIBE_MAX 96

/* The failure that made a communicator dead. */
typedef struct co_comm_cause {
    co_status status; /* CO_OK: it is alive */
    int rank;         /* world rank at fault, or the first to notice */
    char text[CO_COMM_CAUSE_SIZE];
} co_comm_cause;

/* `text`, or a default if it is empty or NULL. */
const char *co_comm_cause_text(const char *text);
void co_comm_cause_set(co_comm_cause *cause, int rank, co_status status, const char *text);
/* Fail as world rank `rank` should report it: another rank's failure becomes CO_E_PEER. */
co_status co_comm_cause_fail(const co_comm_cause *cause, int rank);

/* A zeroed request of `size` bytes (the same for all calls on a communicator) with its common
   fields set. Completed requests are reused, so a training step allocates nothing. */
void *co_comm_take_request(co_comm *comm, size_t size, const co_coll_args *args);
void co_comm_give_request(co_request *request);
/* Free the reusable requests, with the communicator. */
void co_comm_free_spare(co_comm *comm);

/* Pause between polls of a word that another core writes. */
static inline void co_comm_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Requests in posting order; each transport appends its own fields. */
typedef struct co_comm_link {
    co_request base;
    struct co_comm_link *next;
} co_comm_link;

typedef struct co_comm_queue {
    co_comm_link *head, *tail;
} co_comm_queue;

static inline void co_comm_queue_push(co_comm_queue *queue, co_comm_link *link)
{
    link->next = NULL;
    if (queue->head)
        queue->tail->next = link;
    else
        queue->head = link;
    queue->tail = link;
}

static inline void co_comm_queue_pop(co_comm_queue *queue)
{
    queue->head = queue->head->next;
}

co_coll_descriptor co_comm_descriptor(const co_coll_args *args, uint32_t sequence);
/* "allreduce of 10 f32 (sum)", written to and returned as `out`. */
char *co_comm_describe(char *out, size_t size, const co_coll_descriptor *descriptor);
/* "sum"; static. */
const char *co_comm_op_name(co_reduce_op op);
/* Append ", 3" (or " 3" for the first) to a list of ranks; *n counts them. */
void co_comm_list_rank(char *out, size_t size, int *n, int rank);

/* Whether `in` is the parts of a tree. */
static inline bool co_comm_is_tree(const co_coll_args *args)
{
    return args->coll >= CO_COLL_TREE &&
           (args->coll == CO_COLL_TREE || args->coll == CO_COLL_TREE_SLICES);
}
/* Size of an operation's input and output in this rank's memory. */
void co_comm_buffer_bytes(size_t *in, size_t *out, const co_comm *comm, const co_coll_args *args);
/* Make the communicator dead after a failure, except CO_E_USAGE, which the transport never saw.
   Ranks that fail at the same time all return the first cause. */
co_status co_comm_settle(co_comm *comm, co_status st);
/* Start an operation whose arguments have been checked, without waiting for staged ones. */
co_status co_comm_post_now(co_request **request, co_comm *comm, const co_coll_args *args);
/* Check arguments and start an operation. */
co_status co_comm_post(co_request **request, co_comm *comm, const co_coll_args *args);
/* The same, blocking. */
co_status co_comm_run(co_comm *comm, const co_coll_args *args);

/* --- staged.c: device memory, for transports that access only host memory --- */
typedef struct co_staged co_staged;
co_status co_staged_post(co_request **request, co_comm *comm, const co_coll_args *args);
/* Post the operations whose input has arrived; or wait until all are posted. */
co_status co_staged_advance(co_comm *comm);
co_status co_staged_flush(co_comm *comm);
/* For requests with `staged` set. */
co_status co_staged_wait(co_request *request);
co_status co_staged_test(bool *done, co_request *request);
co_status co_staged_order(co_request *request, co_queue *queue);
void co_staged_destroy(co_request *request);

/* The new communicator's members, from (color, key) of every rank of the old one, as seen by
   `rank`. */
typedef struct co_comm_group {
    int rank, size;
    int leader; /* old rank of new rank 0 */
} co_comm_group;

co_comm_group co_comm_group_find(const int32_t (*color_key)[2], int size, int rank);

#endif
