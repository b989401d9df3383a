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

#endif
