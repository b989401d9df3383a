/* nccl_internal.h - NCCL beside a transport; of nccl.c and nccl_tree.c. */
#ifndef CO_COMM_NCCL_INTERNAL_H
#define CO_COMM_NCCL_INTERNAL_H

#include <cohort/ext/comm.h>

#include "comm/nccl.h"
#include "device/cuda/nccl.h"

struct co_nccl {
    cuda_nccl *link;                      /* owned; NULL: it has been aborted */
    co_device *device;                    /* borrowed */
    co_queue *queue;                      /* owned; of NCCL's operations */
    struct nccl_request *waiting, *spare; /* owned by their callers; owned */
    float *room;                          /* owned; parts of a slice of a sum in tree order */
    size_t room_bytes;
    uint32_t sequence;
    bool meeting; /* the host waits for a check, which therefore stays */
};

/* Gives NCCL operations on nccl->queue, as one, and waits until it has accepted them. */
co_status co_nccl_run(co_comm *comm, const cuda_nccl_op *op, size_t n);
/* The sum in tree order of all parts, this rank's `part` among them; on nccl->queue. */
co_status co_nccl_add_up(co_comm *comm, const co_coll_args *args, const float *const *part);

#endif
