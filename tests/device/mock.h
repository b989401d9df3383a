/*
 * mock.h - a device without any hardware, on which what is wrong on a real one goes wrong too: the
 * host dies when it touches the device's memory, and every queue has a worker thread that lets some
 * time pass before each thing it does.
 */
#ifndef TESTS_DEVICE_MOCK_H
#define TESTS_DEVICE_MOCK_H

#include "device/device.h"
#include "device/mock_memory.h"

/* CO_E_UNSUPPORTED: this machine has no such way. */
co_status mock_open(co_device **out, mock_way way);
/* Nothing of the device is left; takes NULL. */
void mock_close(co_device *device);

/* No worker begins anything new until it goes on. */
void mock_hold(co_device *device);
void mock_go_on(co_device *device);
/* What is not done yet, and whatever is queued from now on, is lost, and the device says so. */
void mock_break(co_device *device);
/* Something a worker calls in its turn, with a copy of what was given; memory of the device it
   touches where mock_memory_reach says. What it returns but CO_OK breaks the device. */
typedef co_status (*mock_job)(void *what, mock_memory *memory);
co_status mock_enqueue(co_queue *queue, mock_job job, const void *what, size_t bytes);
/* Copies and fills done so far, on all queues. */
uint64_t mock_done(co_device *device);
/* A number for the sequence of all that queues have been given since it was asked for last: what
   kind of work, on which memory of the device, how much. */
uint64_t mock_trace(co_device *device);

#endif
