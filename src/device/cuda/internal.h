/* internal.h - a GPU, its queues, fences and captures; private to this folder. */
#ifndef CO_DEVICE_CUDA_INTERNAL_H
#define CO_DEVICE_CUDA_INTERNAL_H

#include <pthread.h>

#include <cohort/ext/images.h>
#include <cohort/ext/metric.h>
#include <cohort/ext/optim.h>
#include <cohort/ext/vector.h>

#include "device/cuda/calls.h"
#include "device/cuda/cuda.h"
#include "device/cuda/kernels.h"

#define CUDA_WHY 512

typedef struct cuda_blas cuda_blas; /* matmul.c */
typedef struct cuda_dnn cuda_dnn;   /* convolve.c */

/* Where CO_MEMORY_EXCHANGED comes from. */
typedef enum cuda_exchanged {
    CUDA_EXCHANGED_OPEN,
    CUDA_EXCHANGED_PLAIN,
    CUDA_EXCHANGED_NCCL
} cuda_exchanged;

typedef struct cuda_block {
    void *at;
    size_t bytes;
} cuda_block;

/* Blocks of the GPU's memory that are allocated. Zero has none. */
typedef struct cuda_held {
    cuda_block *block; /* owned: (n) */
    size_t n, room;
    size_t bytes, peak; /* of all of them, now and at most */
} cuda_held;

typedef struct cuda_device {
    co_device base;
    const cuda_driver *cu;
    int version, index;
    bool tf32;
    co_cuda_gpu gpu;
    CUdevice handle;
    CUcontext context;                /* the process's one on this GPU */
    CUstream zeroes;                  /* new memory is zeroed on it; NULL: not there yet */
    CUmodule module[CUDA_FILE_COUNT]; /* NULL: not loaded */
    CUfunction kernel[CUDA_KERNEL_COUNT];
    cuda_blas *blas;              /* owned; NULL: the library is missing */
    cuda_dnn *dnn;                /* likewise */
    struct cuda_queue *capturing; /* borrowed; a capture began with it. NULL: none is under way */
    uint64_t captures;            /* so far */
    bool nccl;                    /* a communicator of NCCL's has been joined with it */
    pthread_mutex_t lock;
    cuda_exchanged exchanged; /* under lock */
    cuda_held held;           /* likewise */
    char why[CUDA_WHY]; /* under lock: what went wrong after it was accepted; "": nothing has */
    co_status failed;   /* likewise: its status */
} cuda_device;

typedef struct cuda_queue {
    co_queue base;
    CUstream stream;
    double *squares;  /* (2) owned; of the GPU: norms of a tensor, between two of its kernels */
    double *blocks;   /* (CUDA_SQUARES_ROOM) after them: squares of blocks, likewise */
    uint64_t capture; /* number of the capture that it is part of; 0: of none */
    struct cuda_queue *branch; /* the next one that has joined the same capture */
    char why[CUDA_WHY];        /* what the capture that began with it could not take; "": nothing */
    co_status failed;          /* its status */
} cuda_queue;

typedef struct cuda_fence {
    co_fence base;
    CUevent event;
    uint64_t capture; /* number of the capture that it is a point of; 0: of none */
} cuda_fence;

typedef struct cuda_capture {
    co_capture base;
    CUgraphExec graph;
} cuda_capture;

co_status cuda_probe_gpu(co_cuda_gpu *out, const cuda_driver *cu, int index);
/* Makes the GPU the calling thread's. */
co_status cuda_enter(const cuda_device *device);

/* held.c; the caller has the device's lock. Count a block; false: there is no memory to note it. */
bool cuda_held_add(cuda_held *held, void *at, size_t bytes);
/* `at` may be no block that was counted. */
void cuda_held_remove(cuda_held *held, const void *at);

/* The message of the thread's last failure, for who cannot return it: the capture under way fails
   by it, or all fences of the device. */
void cuda_keep_failure(cuda_queue *queue);

/* Compiles the kernels, or finds them compiled, and loads them. The GPU is the thread's. */
co_status cuda_load_kernels(cuda_device *device);
void cuda_unload_kernels(cuda_device *device);
extern const co_vector_ops cuda_vector;
extern const co_device_optimizer cuda_optimizers[];
extern const co_device_metrics cuda_metrics;
extern const co_device_images cuda_images_table;

/* co_device_ops, queue.c */
co_status cuda_queue_create(co_queue **out, co_device *base);
void cuda_queue_destroy(co_queue *base);
co_status cuda_copy(co_queue *base, void *to, const void *from, size_t bytes);
co_status cuda_fill(co_queue *base, void *to, int byte, size_t bytes);
co_status cuda_fence_create(co_fence **out, co_device *base);
co_status cuda_timed_fence_create(co_fence **out, co_device *base);
co_status cuda_fence_seconds(double *out, const co_fence *begin, const co_fence *end);
void cuda_fence_destroy(co_fence *base);
co_status cuda_record(co_fence *base, co_queue *queue);
co_status cuda_follow(co_queue *queue, const co_fence *base);
co_status cuda_reached(bool *out, const co_fence *base);
co_status cuda_capture_create(co_capture **out, co_queue *base, co_status (*body)(void *arg),
                              void *arg);
co_status cuda_replay(co_capture *capture, co_queue *queue);
void cuda_capture_destroy(co_capture *base);

#endif
