/*
 * device.h - memory and order of work on any device: calls through ext/device.h, which says what
 * each of them does. NULL is the host, as device, as queue and as fence.
 */
#ifndef CO_DEVICE_DEVICE_H
#define CO_DEVICE_DEVICE_H

#include <stdint.h>

#include <cohort/ext/device.h>

/* A device that has not finished within this time is treated as lost. */
#define CO_DEVICE_WAIT_MS (10 * 60 * 1000)

extern const co_device_ops co_device_host;

/* "host", "cuda" */
const char *co_device_name(const co_device *device);
/* Whether the host may read and write all memory of the device. */
bool co_device_is_host(const co_device *device);

co_status co_device_alloc(void **out, co_device *device, size_t bytes, co_memory kind);
void co_device_free(co_device *device, void *block, co_memory kind);
/* Bytes of the device's own memory that are free; 0: not known. */
size_t co_device_room(co_device *device);
/* Bytes of it that were allocated at once, at most; 0: not counted. */
size_t co_device_peak(co_device *device);
void co_device_forget(co_device *device, void *at, size_t bytes);

co_status co_queue_create(co_queue **out, co_device *device);
/* Waits for the work that is left in it, at most CO_DEVICE_WAIT_MS. */
void co_queue_destroy(co_queue *queue);
co_device *co_queue_device(const co_queue *queue);
co_status co_queue_copy(co_queue *queue, void *to, const void *from, size_t bytes);
co_status co_queue_fill(co_queue *queue, void *to, int byte, size_t bytes);
/* Until all work given to the queue is done. CO_E_TIMEOUT after `timeout_ms`. */
co_status co_queue_wait(co_queue *queue, uint32_t timeout_ms);
/* Copy, and wait for it. */
co_status co_queue_copy_now(co_queue *queue, void *to, const void *from, size_t bytes);

co_status co_fence_create(co_fence **out, co_device *device);
void co_fence_destroy(co_fence *fence);
co_status co_fence_record(co_fence *fence, co_queue *queue);
/* On the host's queue this waits, at most CO_DEVICE_WAIT_MS. */
co_status co_queue_follow(co_queue *queue, const co_fence *fence);
co_status co_fence_reached(bool *out, const co_fence *fence);
/* Whether fences can keep when they were reached. */
bool co_device_has_clock(const co_device *device);
co_status co_timed_fence_create(co_fence **out, co_device *device);
/* From one to the other, of queues of one device; both are reached. */
co_status co_fence_seconds(double *out, const co_fence *begin, const co_fence *end);
/* CO_E_TIMEOUT after `timeout_ms`. */
co_status co_fence_wait(const co_fence *fence, uint32_t timeout_ms);

/* CO_E_UNSUPPORTED where the device cannot. */
co_status co_capture_create(co_capture **out, co_queue *queue, co_status (*body)(void *arg),
                            void *arg);
co_status co_capture_replay(co_capture *capture, co_queue *queue);
void co_capture_destroy(co_capture *capture);

#endif
