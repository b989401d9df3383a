/*
 * queued.h - operations on device memory: they start after the work already in a queue, and a queue
 * can wait for them. With a NULL queue they are the operations of cohort/comm.h.
 */
#ifndef CO_COMM_QUEUED_H
#define CO_COMM_QUEUED_H

#include <cohort/ext/comm.h>

/* Start an operation on memory of args->queue's device, after the work now in that queue. It owns
   the buffers until a queue that waits for it has passed. Operations of one communicator start in
   call order, whatever their queues. */
co_status co_comm_enqueue(co_request **request, co_comm *comm, const co_coll_args *args);
/* Make later work of `queue`, which is of the buffers' device, wait for the operation. If the
   transport cannot access device memory, the host waits here. NULL: co_request_wait. */
co_status co_request_order(co_request *request, co_queue *queue);
/* Enqueue an operation and make args->queue wait for it. */
co_status co_comm_enqueue_run(co_comm *comm, const co_coll_args *args);

/* Whether ranks are on several hosts: then sums can be sent in half precision (co_coll_args.wire),
   and slices of an all-gather pass between hosts once. The same on all ranks. */
bool co_comm_has_hosts(const co_comm *comm);

/* Slices of the two halves of an all-reduce (ext/comm.h), for each rank of one communicator: which
   is that rank's, and the elements of a slice of `count`, in whole units. */
#define CO_SLICE_UNIT ((size_t)1024)
int co_comm_slice_index(const co_comm *comm, int rank);
size_t co_comm_slice_each(const co_comm *comm, size_t count);
/* Slice `index`: returns its elements, from *begin on. */
static inline size_t co_comm_slice(size_t *begin, size_t count, size_t each, int index)
{
    const size_t at = (size_t)index * each;

    *begin = at < count ? at : count;
    return count - *begin < each ? count - *begin : each;
}

/* Wait for the fence, at most the communicator's timeout, while its other operations make progress.
   Its failure ends the wait; a device that fails or times out fails all ranks. */
co_status co_comm_wait_fence(co_comm *comm, const co_fence *fence);

/* Before an operation in flight is destroyed: this rank has failed within a step, or left it, and
   the others shall not wait for it. */
void co_comm_abandon(co_comm *comm);

/* Call before a device is destroyed: frees the device memory that the communicator keeps. No
   operation may be in flight, unless the communicator has failed. */
void co_comm_release_devices(co_comm *comm);

#endif
