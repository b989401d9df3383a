/*
 * device_times.h - when the queues of a device reached some of their points: the points are queued
 * now, and their times are taken once the device has been there, in the order of the calls.
 */
#ifndef CO_PROFILE_DEVICE_TIMES_H
#define CO_PROFILE_DEVICE_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

typedef struct co_device_times co_device_times;

/* The begin or the end of something; the caller's numbers. */
typedef struct co_device_point {
    bool begin;
    int track;
    uint32_t what, step;
    uint64_t value;
} co_device_point;

/* Waits for the device, to have its clock beside co_clock_ns. CO_E_UNSUPPORTED: it has none. */
co_status co_device_times_create(co_device_times **out, co_device *device);
/* All queues have passed their points, or are gone. Takes NULL. */
void co_device_times_destroy(co_device_times *times);
/* What fails is kept, and no later point is. */
void co_device_times_put(co_device_times *times, co_queue *queue, const co_device_point *point);
/* The next point, and when it was by co_clock_ns. False: the device has not been there, or there is
   none. */
bool co_device_times_take(co_device_point *out, uint64_t *ns, co_device_times *times);
/* Until all points can be taken. The first failure of all calls. */
co_status co_device_times_wait(co_device_times *times);

#endif
