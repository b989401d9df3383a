/*
 * nccl.h - NVIDIA's library NCCL, which moves data between the GPUs of several ranks; opened when
 * it is first asked for. Nothing here waits: what has begun is asked for (cuda_nccl_ready).
 */
#ifndef CO_DEVICE_CUDA_NCCL_H
#define CO_DEVICE_CUDA_NCCL_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/comm.h>
#include <cohort/ext/device.h>
#include <cohort/types.h>

#define CUDA_NCCL_ID 128 /* bytes */

typedef enum cuda_nccl_kind {
    CUDA_NCCL_ALLREDUCE,
    CUDA_NCCL_REDUCE,
    CUDA_NCCL_BROADCAST,
    CUDA_NCCL_ALLGATHER,
    CUDA_NCCL_REDUCE_SCATTER,
    CUDA_NCCL_SEND,
    CUDA_NCCL_RECV
} cuda_nccl_kind;

typedef struct cuda_nccl_op {
    cuda_nccl_kind kind;
    const void *in; /* of the GPU's memory, as `out` */
    void *out;
    size_t count; /* elements, of each rank where ranks have one block each */
    co_dtype dtype;
    co_reduce_op op;
    int peer; /* root, or the other side of a message */
} cuda_nccl_op;

/* A rank's part of a communicator of NCCL. */
typedef struct cuda_nccl cuda_nccl;

/* CO_E_UNSUPPORTED, with the remedy: the library is missing, or too old. */
co_status cuda_nccl_check(void);
/* What all ranks join by; of one rank. */
co_status cuda_nccl_make_id(unsigned char id[CUDA_NCCL_ID]);
/* Begins to join; *out also if that fails later. The device is borrowed, and of no other rank. */
co_status cuda_nccl_join(cuda_nccl **out, co_device *device, const unsigned char id[CUDA_NCCL_ID],
                         int rank, int ranks);
/* Whether what was begun has been accepted. CO_E_FAILED: NCCL has failed since. */
co_status cuda_nccl_ready(bool *ready, const cuda_nccl *nccl);
/* Gives `count` operations to the queue as one: messages among them do not wait for each other. */
co_status cuda_nccl_run(cuda_nccl *nccl, co_queue *queue, const cuda_nccl_op *op, size_t count);
/* Whether the library, once it is open, lets memory be registered: a buffer of which it moves data
   without a copy of its own. */
bool cuda_nccl_registers(void);
/* Memory that can be registered for all ways in which it moves data, of the thread's GPU; false:
   none is left. */
bool cuda_nccl_alloc(void **out, size_t bytes);
void cuda_nccl_free(void *block);
/* If it registers: with it, until `handle` is given back. All ranks register what they give to an
   operation together, at the same place of it, or none does. */
co_status cuda_nccl_register(void **handle, cuda_nccl *nccl, void *at, size_t bytes);
void cuda_nccl_deregister(cuda_nccl *nccl, void *handle);
/* Begins to leave, after which it is ready again and can be destroyed. */
co_status cuda_nccl_leave(cuda_nccl *nccl);
void cuda_nccl_destroy(cuda_nccl *nccl);
/* Destroys it at once: operations under way end, on this rank, with any result. */
void cuda_nccl_abort(cuda_nccl *nccl);

#endif
