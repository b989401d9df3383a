/* internal.h - a GPU, its queues, fences and captures; private to this folder. */
#ifndef CO_DEVICE_CUDA_INTERNAL_H
#define CO_DEVICE_CUDA_INTERNAL_H

#include <pthread.h>

#include "device/cuda/calls.h"
#include "device/cuda/cuda.h"

#define CUDA_WHY 512

typedef struct cuda_device {
    co_device base;
    const cuda_driver *cu;
    int version, index;
    co_cuda_gpu gpu;
    CUdevice handle;
    CUcontext context; /* the process's one on this GPU */
    CUstream zeroes;   /* new memory is zeroed on it; NULL: not there yet */
    pthread_mutex_t lock;
    char why[CUDA_WHY]; /* under lock: what went wrong after it was accepted; "": nothing has */
} cuda_device;

typedef struct cuda_queue {
    co_queue base;
    CUstream stream;
    bool capturing;
    char why[CUDA_WHY]; /* what a capture could not take; "": nothing */
} cuda_queue;

typedef struct cuda_fence {
    co_fence base;
    CUevent event;
} cuda_fence;

typedef struct cuda_capture {
    co_capture base;
    CUgraphExec graph;
} cuda_capture;

co_status cuda_probe_gpu(co_cuda_gpu *out, const cuda_driver *cu, int index);
/* Makes the GPU the calling thread's. */
co_status cuda_enter(const cuda_device *device);
/* The message of the thread's last failure, for who cannot return it: the capture under way fails
   by it, or all fences of the device. */
void cuda_keep_failure(cuda_queue *queue);

/* co_device_ops, queue.c */
co_status cuda_queue_create(co_queue **out, co_device *device);
void cuda_queue_destroy(co_queue *queue);
co_status cuda_copy(co_queue *queue, void *to, const void *from, size_t bytes);
co_status cuda_fill(co_queue *queue, void *to, int byte, size_t bytes);
co_status cuda_fence_create(co_fence **out, co_device *device);
void cuda_fence_destroy(co_fence *fence);
co_status cuda_record(co_fence *fence, co_queue *queue);
co_status cuda_follow(co_queue *queue, const co_fence *fence);
co_status cuda_reached(bool *out, const co_fence *fence);
co_status cuda_capture_create(co_capture **out, co_queue *queue, co_status (*body)(void *arg),
                              void *arg);
co_status cuda_replay(co_capture *capture, co_queue *queue);
void cuda_capture_destroy(co_capture *capture);

#endif
