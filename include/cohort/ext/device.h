/*
 * ext/device.h - what the author of a device fills in: memory, and work in order.
 *
 * A device has memory of its own and pinned memory. A queue executes the work that it is given in
 * order and asynchronously; a fence is a point of a queue, which the host can poll and another
 * queue can wait for. There is no other ordering: queues that no fence connects are independent.
 *
 * NULL is the host, for each of the three: its memory is plain memory, its only queue is the
 * caller, who has done everything when a call returns, and its fences are always reached.
 *
 * tests/device/laws.c checks a device against this contract.
 */
#ifndef COHORT_EXT_DEVICE_H
#define COHORT_EXT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct co_device co_device;
typedef struct co_queue co_queue;
typedef struct co_fence co_fence;
typedef struct co_capture co_capture;
struct co_vector_ops;
struct co_device_optimizer;
struct co_device_metrics;
struct co_device_images;

/** Every block begins at a multiple of so many bytes. */
#define CO_DEVICE_ALIGN 64

typedef enum co_memory {
    CO_MEMORY_HOST,     /* of the host; the device may copy it more slowly than pinned memory */
    CO_MEMORY_PINNED,   /* of the host, pinned: copies run asynchronously */
    CO_MEMORY_DEVICE,   /* of the device; where host_memory is false the host may not access it */
    CO_MEMORY_EXCHANGED /* the same, for what ranks exchange in each step */
} co_memory;

/**
 * Threads: memory, queues and fences may be made and freed by any thread at any time. A queue is
 * used by one thread at a time, and so is a fence, but that any thread may ask whether it is
 * reached while nobody records it.
 *
 * Errors: what returns co_status says itself what is wrong with the call. CO_OK of copy, fill and
 * replay means accepted; what goes wrong later `reached` says, of every fence of the device from
 * then on.
 */
typedef struct co_device_ops {
    const char *name, *summary;
    /** All memory is the host's to touch, once the work on it is done. */
    bool host_memory;
    /** `bytes` zeroed bytes, a block of its own even if 0. CO_E_NOMEM. */
    co_status (*alloc)(void **out, co_device *device, size_t bytes, co_memory kind);
    /** `kind` as it was made, NULL allowed; no work on it is left. */
    void (*free)(co_device *device, void *block, co_memory kind);
    /** The values do not matter any more: the memory may serve others until something is written
     *  there again; what is read until then is undefined. NULL: nothing to gain. */
    void (*forget)(co_device *device, void *at, size_t bytes);

    /** Ordered work of the device. *out may stay NULL where the caller does it all at once. */
    co_status (*queue_create)(co_queue **out, co_device *device);
    /** What is left in it is done or dropped when this returns. */
    void (*queue_destroy)(co_queue *queue);
    /** `bytes` bytes, 0 allowed, in any direction between memory of the host and of this device,
     *  which do not overlap. Both are the queue's until it has passed: `from` must not be written
     *  nor freed, `to` not be read. */
    co_status (*copy)(co_queue *queue, void *to, const void *from, size_t bytes);
    /** Each byte becomes `byte`; otherwise as copy. */
    co_status (*fill)(co_queue *queue, void *to, int byte, size_t bytes);

    /** A fence that has not been recorded yet, which is reached. *out may stay NULL where all are.
     */
    co_status (*fence_create)(co_fence **out, co_device *device);
    /** It is reached, and every queue that follows it has passed it. */
    void (*fence_destroy)(co_fence *fence);
    /** Let the fence be the point after all work that the queue has been given so far. Its former
     *  point is reached, or in the same queue. */
    co_status (*record)(co_fence *fence, co_queue *queue);
    /** Later work of the queue waits for the present point of the fence, even if that is recorded
     *  again. The host does not wait. */
    co_status (*follow)(co_queue *queue, const co_fence *fence);
    /** Whether all before the fence is done, so that the host sees what was written. */
    co_status (*reached)(bool *out, const co_fence *fence);

    /** Call `body` once, keep the work that it gives the queue, and do none of it: copies, fills,
     * and what kernels, optimizers and arithmetic put there. What they were given by value is kept
     * as it is; what pointers lead to is read at each replay. A queue that follows a fence recorded
     * in it is part of the capture from then on, and runs beside it in each replay; its last work
     * is followed before `body` returns. Nothing within follows a fence recorded before, and a
     * fence recorded within says nothing until it is recorded again. One at a time. NULL, as the
     * three belong together: the device cannot, and who would replay gives the queue the same work
     * again. */
    co_status (*capture)(co_capture **out, co_queue *queue, co_status (*body)(void *arg),
                         void *arg);
    /** All of it again, in the same order, on the same memory; on any queue of the device. */
    co_status (*replay)(co_capture *capture, co_queue *queue);
    /** No replay of it is under way. */
    void (*capture_destroy)(co_capture *capture);

    /** Arithmetic on this device's memory, done on its queues (ext/vector.h). NULL: the device
     * cannot compute. */
    const struct co_vector_ops *vector;
    /** Optimizers that it has the arithmetic of (ext/optim.h), ended by a NULL name; others are
     * refused. NULL: it has none. */
    const struct co_device_optimizer *optimizers;
    /** What it counts of a step itself (ext/metric.h). NULL: the host does. */
    const struct co_device_metrics *metrics;
    /** Bytes of its own memory that are free, for messages. NULL: it cannot say. */
    size_t (*room)(co_device *device);

    /** As fence_create; the fence also keeps when its point was reached, by the device's clock.
     * NULL, as the two belong together: it has none. */
    co_status (*timed_fence_create)(co_fence **out, co_device *device);
    /** Seconds from the point of one to that of the other, both of timed_fence_create and reached;
     *  below 0 where `end` was first. */
    co_status (*fence_seconds)(double *out, const co_fence *begin, const co_fence *end);

    /** Draws batches of images in its memory (ext/images.h). NULL: the host does. */
    const struct co_device_images *images;
    /** Bytes of its own memory that blocks of `alloc` have taken at once, at most. NULL: it does
     *  not count them. */
    size_t (*peak)(co_device *device);
} co_device_ops;

/** A device puts each of these first in its own struct. */
struct co_device {
    const co_device_ops *ops;
};
struct co_queue {
    co_device *device; /* borrowed */
    co_fence *end;     /* owned by the queue's creator, who waits with it */
};
struct co_fence {
    co_device *device; /* borrowed */
};
struct co_capture {
    co_device *device; /* borrowed */
};

#ifdef __cplusplus
}
#endif
#endif
