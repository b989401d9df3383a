/* nccl_internal.h - NCCL beside a transport; of nccl.c and nccl_tree.c. */
#ifndef CO_COMM_NCCL_INTERNAL_H
#define CO_COMM_NCCL_INTERNAL_H

#include <cohort/ext/comm.h>

#include "comm/captured.h"
#include "comm/nccl.h"
#include "device/cuda/nccl.h"

#define CAPTURED_OPS 4096 /* of a step, that can be told apart by their place */

/* Operations of a capture, and the capture with all else that it has. */
struct co_comm_captured {
    co_comm *comm;          /* borrowed */
    co_capture *capture;    /* owned */
    co_coll_descriptor *op; /* (cap) owned; the first of them */
    co_coll_args first;     /* what `in` and `out` point to may be gone */
    size_t n, cap;
    uint64_t hash;  /* of all */
    uint64_t bytes; /* that a replay sends */
    uint64_t rooms; /* as in co_nccl */
};

/* What ranks say before a captured step, and after a capture. */
typedef struct co_nccl_word {
    uint64_t step, batch, hash, n;
    uint32_t give, reserved;
} co_nccl_word;

struct co_nccl {
    cuda_nccl *link;                      /* owned; NULL: it has been aborted */
    co_device *device;                    /* borrowed */
    co_queue *queue;                      /* owned; of NCCL's operations */
    struct nccl_request *waiting, *spare; /* owned by their callers; owned */
    void *registered;                     /* handle of a buffer; NULL: none */
    float *room;                          /* owned; parts of a slice of a sum in tree order */
    size_t room_bytes;
    uint64_t rooms;                   /* that there have been; captures know theirs by address */
    co_comm_captured *capturing;      /* borrowed; NULL: no capture is under way */
    struct nccl_request *captured;    /* owned; of the capture under way, whose fences stay */
    const co_comm_captured *replayed; /* borrowed; the last one; NULL: none, or it is gone */
    co_nccl_word *word;               /* owned; (ranks): room for what they say */
    unsigned char *mark;              /* owned, pinned: how many operations of a replay are done */
    uint32_t sequence;
    bool meeting; /* the host waits for a check, which therefore stays */
};

/* Gives NCCL operations on nccl->queue, as one, and waits until it has accepted them. */
co_status co_nccl_run(co_comm *comm, const cuda_nccl_op *op, size_t n);
/* The operation is part of the capture under way. */
void co_nccl_captured_add(co_comm_captured *captured, const co_coll_args *args);
/* What the mark is once its last one so far is done. */
int co_nccl_captured_mark(const co_comm_captured *captured);
/* The capture has ended. */
void co_nccl_drop_captured(co_nccl *nccl);
/* The sum in tree order of all parts, this rank's `part` among them; on nccl->queue. */
co_status co_nccl_add_up(co_comm *comm, const co_coll_args *args, const float *const *part);

#endif
