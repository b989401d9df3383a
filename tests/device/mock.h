/*
 * mock.h - a device without hardware that shows the mistakes a real one would show.
 *
 * The process crashes when the host touches device memory, and every queue has a worker thread that
 * waits a while before each operation.
 */
#ifndef TESTS_DEVICE_MOCK_H
#define TESTS_DEVICE_MOCK_H

#include "device/device.h"
#include "device/mock_memory.h"

/* CO_E_UNSUPPORTED: this machine does not support `way`. */
co_status mock_open(co_device **out, mock_way way);
/* All of the device's memory must have been freed; takes NULL. */
void mock_close(co_device *device);

/* Until mock_go_on no worker starts another operation. */
void mock_hold(co_device *device);
void mock_go_on(co_device *device);
/* Drops all pending and future work; calls then fail. */
void mock_break(co_device *device);
/* Run by a worker in queue order with a copy of `what`; reaches device memory through
   mock_memory_reach. A status other than CO_OK breaks the device. */
typedef co_status (*mock_job)(void *what, mock_memory *memory);
co_status mock_enqueue(co_queue *queue, mock_job job, const void *what, size_t bytes);
/* Operations executed so far, on all queues. */
uint64_t mock_done(co_device *device);
/* Hash of the work queued since the last call: kinds, device addresses and sizes, in order. */
uint64_t mock_trace(co_device *device);

/* What queues were given, and what of it the host has seen to be done, in order. */
typedef enum mock_entry_kind {
    MOCK_COPIED,
    MOCK_RECORDED,
    MOCK_REPLAYED, /* before what the replay gives */
    MOCK_SEEN
} mock_entry_kind;

typedef struct mock_entry {
    mock_entry_kind kind;
    const void *to, *from; /* of a copy */
    size_t bytes;
    const co_fence *fence; /* that was recorded, or seen to be reached */
} mock_entry;

/* From now on, into `entries` (max), which is borrowed. */
void mock_log(co_device *device, mock_entry *entries, size_t max);
/* How many there are; `max`: some may be missing. */
size_t mock_logged(co_device *device);

#endif
