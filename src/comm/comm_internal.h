/*
 * comm_internal.h - what transports share: failure records, descriptors, queues, waiting.
 */
#ifndef CO_COMM_COMM_INTERNAL_H
#define CO_COMM_COMM_INTERNAL_H

#include <cohort/ext/comm.h>

#include "comm/watch.h"

#define CO_COMM_CAUSE_SIZE   1900 /* a message is cut at 2,000 bytes */
#define CO_COMM_TIMEOUT_MS   300000
#define CO_COMM_DESCRIBE_MAX 96

/* The failure that made a communicator dead. */
typedef struct co_comm_cause {
    co_status status; /* CO_OK: it is alive */
    int rank;         /* the rank at fault, or the first to notice; in the world */
    char text[CO_COMM_CAUSE_SIZE];
} co_comm_cause;

/* The text itself, or a default for one that is empty or NULL. */
const char *co_comm_cause_text(const char *text);
void co_comm_cause_set(co_comm_cause *cause, int rank, co_status status, const char *text);
/* Fail with it as world rank `rank` reports it: a failure of others alone is CO_E_PEER here. */
co_status co_comm_cause_fail(const co_comm_cause *cause, int rank);

/* A zeroed request of `size` bytes, which is the same for all calls on one communicator, with its
   first fields set; completed requests are reused, so that a training step allocates nothing. */
void *co_comm_take_request(co_comm *comm, size_t size, const co_coll_args *args);
void co_comm_give_request(co_request *request);
/* When the communicator is destroyed. */
void co_comm_free_spare(co_comm *comm);

/* Between two polls of a word that another core will write. */
static inline void co_comm_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Requests in the order posted, each followed by its transport's own fields. */
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
/* "allreduce of 10 f32 (sum)"; returns `out`. */
char *co_comm_describe(char *out, size_t size, const co_coll_descriptor *descriptor);
/* "sum"; static. */
const char *co_comm_op_name(co_reduce_op op);
/* Append ", 3" (or " 3" for the first) to a list of ranks; *n counts them. */
void co_comm_list_rank(char *out, size_t size, int *n, int rank);

/* Bytes of input and output that an operation has in this rank's memory. */
void co_comm_buffer_bytes(size_t *in, size_t *out, const co_comm *comm, const co_coll_args *args);
/* Start an operation whose arguments have been checked, before those that wait for a queue. */
co_status co_comm_post_now(co_request **request, co_comm *comm, const co_coll_args *args);
/* Start an operation; checks its arguments. */
co_status co_comm_post(co_request **request, co_comm *comm, const co_coll_args *args);
/* The same as a blocking call. */
co_status co_comm_run(co_comm *comm, const co_coll_args *args);

/* --- staged.c: memory of a device, over transports that access the host's --- */
typedef struct co_staged co_staged;
co_status co_staged_post(co_request **request, co_comm *comm, const co_coll_args *args);
/* Post those whose input has arrived; wait until all are posted. */
co_status co_staged_advance(co_comm *comm);
co_status co_staged_flush(co_comm *comm);
/* Of a request that is `staged`. */
co_status co_staged_wait(co_request *request);
co_status co_staged_test(bool *done, co_request *request);
co_status co_staged_order(co_request *request, co_queue *queue);
void co_staged_destroy(co_request *request);

/* From (color, key) of every rank of the old communicator: the members of the new one of `rank`. */
typedef struct co_comm_group {
    int rank, size;
    int leader; /* old rank of new rank 0 */
} co_comm_group;

co_comm_group co_comm_group_find(const int32_t (*color_key)[2], int size, int rank);

#endif
