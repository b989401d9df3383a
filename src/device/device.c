/*
 * device.c - calls of a device, and waiting for it.
 *
 * Names no device except the host, which is NULL.
 */
#include "device/device.h"

#include <sched.h>

#include "core/clock.h"

/* Polls of a fence before the core is yielded, and before the first sleep. */
#define DEVICE_SPINS    256
#define DEVICE_YIELDS   256
#define DEVICE_SLEEP_US 50

static const co_device_ops *device_ops(const co_device *device)
{
    return device ? device->ops : &co_device_host;
}

static const co_device_ops *queue_ops(const co_queue *queue)
{
    return device_ops(co_queue_device(queue));
}

static const co_device_ops *fence_ops(const co_fence *fence)
{
    return device_ops(fence ? fence->device : NULL);
}

const char *co_device_name(const co_device *device)
{
    return device_ops(device)->name;
}

bool co_device_is_host(const co_device *device)
{
    return device_ops(device)->host_memory;
}

co_status co_device_alloc(void **out, co_device *device, size_t bytes, co_memory kind)
{
    return device_ops(device)->alloc(out, device, bytes, kind);
}

void co_device_free(co_device *device, void *block, co_memory kind)
{
    if (block)
        device_ops(device)->free(device, block, kind);
}

size_t co_device_room(co_device *device)
{
    const co_device_ops *ops = device_ops(device);

    return ops->room ? ops->room(device) : 0;
}

size_t co_device_peak(co_device *device)
{
    const co_device_ops *ops = device_ops(device);

    return ops->peak ? ops->peak(device) : 0;
}

void co_device_forget(co_device *device, void *at, size_t bytes)
{
    if (device_ops(device)->forget)
        device_ops(device)->forget(device, at, bytes);
}

co_status co_queue_create(co_queue **out, co_device *device)
{
    co_queue *queue = NULL;
    co_status st;

    CO_TRY(device_ops(device)->queue_create(&queue, device));
    if (queue) {
        st = co_fence_create(&queue->end, device);
        if (st != CO_OK) {
            device_ops(device)->queue_destroy(queue);
            return st;
        }
    }
    *out = queue;
    return CO_OK;
}

void co_queue_destroy(co_queue *queue)
{
    co_fence *end;

    if (!queue)
        return;
    end = queue->end;
    (void)co_queue_wait(queue, CO_DEVICE_WAIT_MS);
    queue_ops(queue)->queue_destroy(queue);
    co_fence_destroy(end);
}

co_device *co_queue_device(const co_queue *queue)
{
    return queue ? queue->device : NULL;
}

co_status co_queue_copy(co_queue *queue, void *to, const void *from, size_t bytes)
{
    return queue_ops(queue)->copy(queue, to, from, bytes);
}

co_status co_queue_fill(co_queue *queue, void *to, int byte, size_t bytes)
{
    return queue_ops(queue)->fill(queue, to, byte, bytes);
}

co_status co_queue_wait(co_queue *queue, uint32_t timeout_ms)
{
    if (!queue)
        return CO_OK;
    CO_TRY(co_fence_record(queue->end, queue));
    return co_fence_wait(queue->end, timeout_ms);
}

co_status co_queue_copy_now(co_queue *queue, void *to, const void *from, size_t bytes)
{
    CO_TRY(co_queue_copy(queue, to, from, bytes));
    return co_queue_wait(queue, CO_DEVICE_WAIT_MS);
}

co_status co_fence_create(co_fence **out, co_device *device)
{
    return device_ops(device)->fence_create(out, device);
}

void co_fence_destroy(co_fence *fence)
{
    if (fence)
        fence_ops(fence)->fence_destroy(fence);
}

co_status co_fence_record(co_fence *fence, co_queue *queue)
{
    return queue_ops(queue)->record(fence, queue);
}

co_status co_queue_follow(co_queue *queue, const co_fence *fence)
{
    if (!fence)
        return CO_OK;
    if (!queue)
        return co_fence_wait(fence, CO_DEVICE_WAIT_MS);
    return queue_ops(queue)->follow(queue, fence);
}

co_status co_fence_reached(bool *out, const co_fence *fence)
{
    return fence_ops(fence)->reached(out, fence);
}

bool co_device_has_clock(const co_device *device)
{
    return device_ops(device)->timed_fence_create != NULL;
}

co_status co_timed_fence_create(co_fence **out, co_device *device)
{
    const co_device_ops *ops = device_ops(device);

    if (!ops->timed_fence_create)
        return co_fail(CO_E_UNSUPPORTED, "device %s has no clock", ops->name);
    return ops->timed_fence_create(out, device);
}

co_status co_fence_seconds(double *out, const co_fence *begin, const co_fence *end)
{
    return fence_ops(begin)->fence_seconds(out, begin, end);
}

/* The first polls are for work that is nearly done; later ones yield the core. */
static void fence_pause(unsigned look)
{
    if (look < DEVICE_SPINS)
        return;
    if (look < DEVICE_SPINS + DEVICE_YIELDS)
        sched_yield();
    else
        co_clock_sleep_us(DEVICE_SLEEP_US);
}

co_status co_fence_wait(const co_fence *fence, uint32_t timeout_ms)
{
    const uint64_t start = co_clock_ns(), limit = (uint64_t)timeout_ms * 1000000;
    bool reached = false;

    for (unsigned look = 0;; look++) {
        CO_TRY(co_fence_reached(&reached, fence));
        if (reached)
            return CO_OK;
        if (co_clock_ns() - start >= limit)
            return co_fail(CO_E_TIMEOUT,
                           "device %s: not done after %u ms; its work hangs, or takes "
                           "longer than anything a training step does",
                           co_device_name(fence->device), (unsigned)timeout_ms);
        fence_pause(look);
    }
}

co_status co_capture_create(co_capture **out, co_queue *queue, co_status (*body)(void *arg),
                            void *arg)
{
    const co_device_ops *ops = queue_ops(queue);

    if (!ops->capture)
        return co_fail(CO_E_UNSUPPORTED, "device %s keeps no work to be done again", ops->name);
    return ops->capture(out, queue, body, arg);
}

co_status co_capture_replay(co_capture *capture, co_queue *queue)
{
    return queue_ops(queue)->replay(capture, queue);
}

void co_capture_destroy(co_capture *capture)
{
    if (capture)
        device_ops(capture->device)->capture_destroy(capture);
}
