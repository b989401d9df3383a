/*
 * comm.h - ranks that talk to each other: point-to-point and collectives.
 *
 * One interface over three transports: `self` (one rank), `shm` (ranks of one machine, over
 * memory shared between forked processes or threads) and `mpi`.
 *
 * Rules for all operations:
 *   - All ranks of a communicator call the same collectives in the same order with the same
 *     count, type, operation and root; each carries a 16-byte descriptor that peers compare, and
 *     a difference is CO_E_MISMATCH on every rank, not a hang.
 *   - Counts are elements, not bytes. `count` 0 is allowed.
 *   - `in` and `out` may be the same pointer (in place) in bcast, reduce and allreduce, and in no
 *     other operation; they must not overlap otherwise.
 *   - A blocking call waits at most the communicator's timeout; then CO_E_TIMEOUT names the
 *     ranks that did not arrive. After any failure but CO_E_USAGE the communicator is dead:
 *     every further call on any rank fails at once with the first cause.
 *   - The non-blocking form (`co_comm_i...`) returns a request; the buffers belong to the
 *     operation until co_request_wait has returned. Collectives complete in the order posted.
 *   - A communicator and its requests belong to one thread at a time.
 *   - Reductions are done in the type of the data. Of a NaN and a number, CO_MIN and CO_MAX give
 *     either. CO_AVG is the sum divided by the world size
 *     (integers: truncated). For a fixed world size, transport and placement of ranks on hosts an
 *     element has the same bits on every rank and in every run, whatever the count; the sum of two
 *     ranks has the same bits over every transport.
 */
#ifndef COHORT_COMM_H
#define COHORT_COMM_H

#include <cohort/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct co_comm co_comm;
typedef struct co_request co_request;
typedef struct co_tree co_tree;

typedef enum co_reduce_op {
    CO_SUM = 0,
    CO_PROD,
    CO_MIN,
    CO_MAX,
    CO_AVG,
    CO_REDUCE_OP_COUNT
} co_reduce_op;

CO_API int co_comm_rank(const co_comm *comm);
CO_API int co_comm_size(const co_comm *comm);
/** "self", "shm" or "mpi". Static. */
CO_API const char *co_comm_transport(const co_comm *comm);
/** The node-local communicator: the ranks of `comm` that share memory with this one, in their
 * order; windows can be created on it. `comm` itself where all of them do; NULL where there is only
 * this rank, or it is not known. Borrowed; its operations involve those ranks only. */
CO_API co_comm *co_comm_local(co_comm *comm);
/** Limit of every later wait, in milliseconds; 0 is refused. The default is 300,000. */
CO_API co_status co_comm_set_timeout(co_comm *comm, uint32_t timeout_ms);
CO_API uint32_t co_comm_timeout(const co_comm *comm);
/** Bytes that this rank has sent over the transport: its own contributions, each counted once. */
CO_API uint64_t co_comm_bytes_sent(const co_comm *comm);

/* Blocking operations. */
CO_API co_status co_comm_send(co_comm *comm, const void *in, size_t count, co_dtype dtype, int to);
/** Messages from one rank arrive in the order sent. A message of another length or type than
 *  expected is CO_E_MISMATCH. */
CO_API co_status co_comm_recv(co_comm *comm, void *out, size_t count, co_dtype dtype, int from);
CO_API co_status co_comm_bcast(co_comm *comm, void *inout, size_t count, co_dtype dtype, int root);
/** `out` is written on the root alone and may be NULL elsewhere. */
CO_API co_status co_comm_reduce(co_comm *comm, void *out, const void *in, size_t count,
                                co_dtype dtype, co_reduce_op op, int root);
CO_API co_status co_comm_allreduce(co_comm *comm, void *out, const void *in, size_t count,
                                   co_dtype dtype, co_reduce_op op);
/** `in` has size * count elements, `out` the `count` of this rank's block. */
CO_API co_status co_comm_reduce_scatter(co_comm *comm, void *out, const void *in, size_t count,
                                        co_dtype dtype, co_reduce_op op);
/** `in` has `count` elements, `out` size * count, in rank order. */
CO_API co_status co_comm_allgather(co_comm *comm, void *out, const void *in, size_t count,
                                   co_dtype dtype);
/** As allgather, on the root alone; `out` may be NULL elsewhere. */
CO_API co_status co_comm_gather(co_comm *comm, void *out, const void *in, size_t count,
                                co_dtype dtype, int root);
/** `in` has size * count elements on the root and may be NULL elsewhere; `out` has `count`. */
CO_API co_status co_comm_scatter(co_comm *comm, void *out, const void *in, size_t count,
                                 co_dtype dtype, int root);
CO_API co_status co_comm_barrier(co_comm *comm);

/* Sums that have the same bits for any number of ranks. The terms are the leaves 0 .. leaves - 1 of
   a binary tree, whose node [a, b) splits at a plus the largest power of two below b - a. Ranks
   hold consecutive leaves, nearly equal in number; each adds up the complete subtrees among its
   leaves, its parts, and the tree all-reduce adds up the parts of all ranks in the tree's order. */
/** A function of `leaves` (at most 1024) and `ranks` (at most `leaves`) alone. Caller destroys. */
CO_API co_status co_tree_create(co_tree **out, int leaves, int ranks);
CO_API void co_tree_destroy(co_tree *tree);
/** Rank r holds the leaves co_tree_first(r) to co_tree_first(r + 1) - 1. `rank` is not checked: 0
 * to the tree's number of ranks, and less than that for co_tree_parts. */
CO_API int co_tree_first(const co_tree *tree, int rank);
CO_API int co_tree_parts(const co_tree *tree, int rank);
/** `in`: the rank's parts from left to right, of `count` elements each; `out`, which may be one of
 *  them, becomes the sum of all leaves on every rank. */
CO_API co_status co_comm_tree_allreduce(co_comm *comm, const co_tree *tree, void *out,
                                        const void *const *in, size_t count, co_dtype dtype);

/* Non-blocking forms with the same arguments; the caller owns *request. Where `request` is NULL the
   call blocks. */
CO_API co_status co_comm_isend(co_request **request, co_comm *comm, const void *in, size_t count,
                               co_dtype dtype, int to);
CO_API co_status co_comm_irecv(co_request **request, co_comm *comm, void *out, size_t count,
                               co_dtype dtype, int from);
CO_API co_status co_comm_ibcast(co_request **request, co_comm *comm, void *inout, size_t count,
                                co_dtype dtype, int root);
CO_API co_status co_comm_ireduce(co_request **request, co_comm *comm, void *out, const void *in,
                                 size_t count, co_dtype dtype, co_reduce_op op, int root);
CO_API co_status co_comm_iallreduce(co_request **request, co_comm *comm, void *out, const void *in,
                                    size_t count, co_dtype dtype, co_reduce_op op);
/** `tree` and the array `in` belong to the operation as the buffers do. */
CO_API co_status co_comm_itree_allreduce(co_request **request, co_comm *comm, const co_tree *tree,
                                         void *out, const void *const *in, size_t count,
                                         co_dtype dtype);
CO_API co_status co_comm_ireduce_scatter(co_request **request, co_comm *comm, void *out,
                                         const void *in, size_t count, co_dtype dtype,
                                         co_reduce_op op);
CO_API co_status co_comm_iallgather(co_request **request, co_comm *comm, void *out, const void *in,
                                    size_t count, co_dtype dtype);
CO_API co_status co_comm_igather(co_request **request, co_comm *comm, void *out, const void *in,
                                 size_t count, co_dtype dtype, int root);
CO_API co_status co_comm_iscatter(co_request **request, co_comm *comm, void *out, const void *in,
                                  size_t count, co_dtype dtype, int root);
CO_API co_status co_comm_ibarrier(co_request **request, co_comm *comm);

/** Wait until the operation is complete, at most the communicator's timeout. */
CO_API co_status co_request_wait(co_request *request);
/** Advance without waiting; *done says whether the operation is complete. */
CO_API co_status co_request_test(bool *done, co_request *request);
/** Free a request; takes NULL. An incomplete one must not be destroyed, except after a failure of
 *  its communicator. */
CO_API void co_request_destroy(co_request *request);

/** Let pending operations advance; a thread that computes calls it between kernels. */
CO_API co_status co_comm_progress(co_comm *comm);

/** Ranks with the same `color` (>= 0) form a new communicator, ranked by (`key`, old rank); color
 * -1 gives *out = NULL, and so does a failure. Collective. Destroy the new one before its parent.
 */
CO_API co_status co_comm_split(co_comm **out, co_comm *comm, int color, int key);

/** Memory that every rank of `comm` reads and writes: `bytes` zero bytes at *base, the same address
 *  on all of them. Collective. Only where ranks are on one machine; elsewhere CO_E_UNSUPPORTED.
 *  Ranks order their accesses themselves, with atomics or a barrier. Release it with
 *  co_comm_window_destroy on each rank, before the communicator is destroyed. */
CO_API co_status co_comm_window_create(void **base, co_comm *comm, size_t bytes);
/** `base` may be NULL. Not collective. */
CO_API void co_comm_window_destroy(co_comm *comm, void *base, size_t bytes);

/** Memory of this rank alone, zeroed and aligned to 64 bytes, in which all-reduces are fastest:
 *  ranks of one machine read and write each other's buffers there, without a copy. Any communicator
 *  may use it, or a part of it; where that is not possible it is plain memory. Not collective. */
CO_API co_status co_comm_alloc(void **out, co_comm *comm, size_t bytes);
/** `data` may be NULL; `bytes` as passed to co_comm_alloc. No operation may be using it. */
CO_API void co_comm_free(co_comm *comm, void *data, size_t bytes);

/** Report to every rank that this one has failed, with a one-line cause; all waits end. Other ranks
 *  fail with CO_E_PEER, "rank 1 failed: ..."; over MPI the whole job ends. */
CO_API void co_comm_abort(co_comm *comm, co_status status, const char *cause);

/** Takes NULL. Not collective, except over MPI. */
CO_API void co_comm_destroy(co_comm *comm);

/** The communicator of one rank. */
CO_API co_status co_comm_create_self(co_comm **out);

#ifdef __cplusplus
}
#endif
#endif
