/* ext/comm.h - what the author of a transport fills in. */
#ifndef COHORT_EXT_COMM_H
#define COHORT_EXT_COMM_H

#include <cohort/comm.h>
#include <cohort/ext/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The last three are the two halves of an all-reduce, in place: a buffer of `count` elements has a
 * slice of `each` elements for each rank, in the order of co_comm_slice_index, the last ones
 * shorter or empty. The first half, also in the order of a tree, gives each rank the sum of its own
 * slice, and leaves the others undefined; the second gives all slices to all. */
typedef enum co_coll {
    CO_COLL_BARRIER = 0,
    CO_COLL_BCAST,
    CO_COLL_REDUCE,
    CO_COLL_ALLREDUCE,
    CO_COLL_REDUCE_SCATTER,
    CO_COLL_ALLGATHER,
    CO_COLL_GATHER,
    CO_COLL_SCATTER,
    CO_COLL_SPLIT,
    CO_COLL_SEND,
    CO_COLL_RECV,
    CO_COLL_TREE,
    CO_COLL_REDUCE_SLICES,
    CO_COLL_GATHER_SLICES,
    CO_COLL_TREE_SLICES,
    CO_COLL_COUNT
} co_coll;

/** How a sum of floats crosses from host to host in half precision. The ranks of a host add up in
 *  float; what a host sends is rounded, its own terms and the sum that it has made of others. Every
 *  rank has the same result, and what roundings lost is added up in `rest` of the ranks that
 *  rounded: result and rests of all ranks together are the sum of the inputs. */
typedef struct co_wire {
    co_dtype dtype;                     /* CO_BF16, CO_F16 */
    const struct co_vector_ops *vector; /* the host's (ext/vector.h) */
    float *rest; /* out, (count); may be the operation's input, but not its output. NULL: lost */
} co_wire;

/** One operation as posted; arguments have been checked by comm.c. */
typedef struct co_coll_args {
    co_coll coll;
    const void *in; /* of a tree all-reduce: const void *const *, (parts of this rank) */
    void *out;
    size_t count;
    size_t each; /* elements of a slice, where operations have slices */
    co_dtype dtype;
    co_reduce_op op;
    int peer;            /* root, or the other side of a send or receive */
    const co_tree *tree; /* of a sum in tree order */
    co_queue *queue;     /* buffers are in memory of its device, and ready when what it holds now is
                            done; NULL: the host's, and ready */
    const co_wire *wire; /* of CO_SUM of floats by an all-reduce in the host's memory, where
                            co_comm_ops.hosts is set; belongs to the operation as buffers do. NULL:
                            floats are sent */
} co_coll_args;

/** The descriptor that peers compare: 16 bytes, equal on every rank. */
typedef struct co_coll_descriptor {
    uint32_t sequence;
    uint8_t coll;
    uint8_t dtype_op; /* dtype | op << 4 */
    uint16_t root;    /* or the leaves of the tree, or co_wire.dtype */
    uint64_t count;
} co_coll_descriptor;

/** A pending operation; a transport puts this first in its own request struct. */
struct co_request {
    co_comm *comm; /* borrowed */
    co_coll_args args;
    bool done;
    uint64_t number;                   /* number among this rank's operations, for its watch */
    co_request *next_spare;            /* in co_comm.spare */
    struct co_comm_observer *observer; /* notified when it is complete; NULL: none, or done */
    co_request *next_watched;          /* of the ranks that it waits for */
    uint64_t posted_ns;
    bool staged;               /* of memory that the transport cannot access: a request of comm.c */
    bool nccl;                 /* of memory of GPUs, which NCCL exchanges: likewise */
    const co_coll_args *whole; /* what this operation is a part of; NULL: nothing */
};

/** A transport's side of a communicator. */
typedef struct co_comm_ops {
    const char *name;
    const char *summary;
    unsigned memory; /* kinds of memory that buffers may be in beside the host's: 1 << co_memory. Of
                        others comm.c makes copies on the host */
    bool polled;     /* data moves only while a rank polls its operation, step by step */
    bool hosts;      /* ranks are on several hosts, and co_coll_args.wire is known */
    /* Whether it can be used with this build and machine; *why is a static one-line reason when
       not. */
    bool (*probe)(const char **why);
    co_status (*post)(co_request **request, co_comm *comm, const co_coll_args *args);
    /* A collective from post to end, faster than with a request; it has to make the calls of
       co_watch_post itself. NULL: post and wait. */
    co_status (*run)(co_comm *comm, const co_coll_args *args);
    /* What `queue` is given from now on comes after the operation, whose buffers are in memory of a
       device. NULL: post has put all of it on args.queue, and no other queue waits for it. */
    co_status (*order)(co_request *request, co_queue *queue);
    /* Advance everything that can advance without waiting. */
    co_status (*progress)(co_comm *comm);
    /* "waiting in allreduce for ranks 1, 3": for the message of a timeout. */
    void (*describe_wait)(const co_request *request, char *out, size_t size);
    /* Whether the oldest operation waits for `rank`, and the state of that rank. NULL: it does not
       wait for it, or the state is not accessible here. NULL function: it never is. */
    const struct co_watch *(*late)(const co_request *request, int rank);
    /* This rank has begun to save something, and will be late for its next operation; whether the
       oldest operation waits for a rank that has announced this. NULL: `late` knows of all
       ranks. */
    void (*tell_saving)(co_comm *comm);
    bool (*is_saving)(const co_request *request);
    void (*destroy_request)(co_request *request);
    co_status (*split)(co_comm **out, co_comm *comm, int color, int key);
    /* comm->timeout_ms has changed; NULL: nothing to do. */
    void (*set_timeout)(co_comm *comm);
    /* Which slice is that rank's; NULL: the rank's number. */
    int (*slice_index)(const co_comm *comm, int rank);
    /* co_comm_local; NULL function: all ranks share memory. */
    co_comm *(*local)(co_comm *comm);
    /* Zeroed memory that all ranks share; NULL: the transport has none. CO_E_UNSUPPORTED, on all
       ranks: this communicator has none. */
    co_status (*window)(void **base, co_comm *comm, size_t bytes);
    void (*free_window)(co_comm *comm, void *base, size_t bytes);
    /* Zeroed memory of this rank that operations access without a copy; returns NULL where there is
       not enough. NULL: any memory serves. */
    void *(*alloc)(co_comm *comm, size_t bytes);
    /* False: the memory is not from `alloc`. */
    bool (*free)(co_comm *comm, void *data, size_t bytes);
    /* The communicator is dead: every later call on it fails with this status and cause, unless an
       earlier cause is known. Peers are informed where that takes no message. `rank`: the one at
       fault, of this communicator; another than this rank only where `late` has named it. */
    void (*fail)(co_comm *comm, int rank, co_status status, const char *cause);
    /* This rank has failed: end every wait of every rank, in all communicators. */
    void (*abort)(co_comm *comm, co_status status, const char *cause);
    void (*destroy)(co_comm *comm);
} co_comm_ops;

/** A transport puts this first in its own communicator struct. */
struct co_comm {
    const co_comm_ops *ops;
    int rank, size;
    bool oversubscribed; /* more ranks than cores: waiters yield immediately */
    uint32_t timeout_ms;
    uint64_t bytes_sent;
    uint64_t arrivals; /* of messages that belong to operations, where the transport counts them: a
                          wait does not sleep while they keep coming */
    co_request *spare; /* completed requests, to be reused by later posts; owned */
    struct co_staged *staged, *staged_spare; /* of memory of a device: to be posted yet; completed;
                                                owned */
    struct co_watch *watch; /* borrowed: this rank's state, for others; NULL: not recorded */
    struct co_comm_observer *observer; /* notified of completed operations; NULL: none; borrowed */
    struct co_nccl *nccl;              /* of memory of GPUs; NULL: none; owned */
};

#ifdef __cplusplus
}
#endif
#endif
