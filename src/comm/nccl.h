/*
 * nccl.h - NCCL beside a transport: what is in memory of GPUs goes from GPU to GPU by NCCL, all
 * else, and what ranks have to agree on, by the transport.
 */
#ifndef CO_COMM_NCCL_H
#define CO_COMM_NCCL_H

#include <cohort/ext/comm.h>

/* From now on, for operations on memory of this device, which is the rank's alone; until
   co_comm_release_devices. Collective. CO_E_UNSUPPORTED, on all ranks: a rank is without NCCL. */
co_status co_nccl_open(co_comm *comm, co_device *device);

/* Registers memory of CO_MEMORY_EXCHANGED with NCCL, if it is there and can on all ranks, until
   co_comm_release_devices; before that nothing of it may be freed. All ranks then give operations
   the same parts of theirs, or none of it. Collective. */
co_status co_nccl_register(co_comm *comm, void *at, size_t bytes);

/* ---- for src/comm ---- */

typedef struct co_nccl co_nccl;

/* Whether this operation is NCCL's; the same on all ranks. */
bool co_nccl_takes(const co_comm *comm, const co_coll_args *args);
/* CO_E_USAGE: the operation cannot be part of the capture that is under way. */
co_status co_nccl_check_captured(const co_comm *comm, const co_coll_args *args);
co_status co_nccl_post(co_request **request, co_comm *comm, const co_coll_args *args);
/* After the transport's progress: gives NCCL what all ranks have posted. */
co_status co_nccl_advance(co_comm *comm);
/* The communicator is dead: operations under way end. */
void co_nccl_abort(co_comm *comm);
void co_nccl_close(co_comm *comm);
/* "; 1 of the 3 operations ..."; "": no captured step has been replayed. Returns `out`. */
char *co_nccl_describe_replay(char *out, size_t size, const co_comm *comm);
/* For requests with `nccl` set. */
co_status co_nccl_wait(co_request *request);
co_status co_nccl_test(bool *done, co_request *request);
co_status co_nccl_order(co_request *request, co_queue *queue);
void co_nccl_destroy(co_request *request);

#endif
