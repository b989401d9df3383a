/*
 * queued.h - operations on memory of a device: they start when what a queue holds is done, and a
 * queue waits for their end. With a NULL queue they are those of cohort/comm.h.
 */
#ifndef CO_COMM_QUEUED_H
#define CO_COMM_QUEUED_H

#include <cohort/ext/comm.h>

/* Buffers are in memory of the device of args->queue, and ready when what that queue holds now is
   done. They are the operation's until a queue that waits for it has passed. Operations of one
   communicator start in the order of these calls, whatever queues they name. */
co_status co_comm_enqueue(co_request **request, co_comm *comm, const co_coll_args *args);
/* What `queue`, of the device of the buffers, is given from now on comes after the operation. Where
   the transport cannot reach such memory the host waits here. NULL: co_request_wait. */
co_status co_request_order(co_request *request, co_queue *queue);
/* From start to end, in the order of args->queue. */
co_status co_comm_enqueue_run(co_comm *comm, const co_coll_args *args);

/* Until all before the fence is done, at most the communicator's timeout. Its other operations
   continue, and its failure ends the wait; a device that fails or takes too long ends it for all
   ranks. */
co_status co_comm_wait_fence(co_comm *comm, const co_fence *fence);

/* Before a device goes: what the communicator keeps of its memory is freed. No operation of it is
   under way, but for those of a communicator that has failed. */
void co_comm_release_devices(co_comm *comm);

#endif
