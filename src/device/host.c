/*
 * host.c - the host as a device: work is done when the call returns, so its queue and its fences
 * are empty, and a capture would record nothing.
 */
#include <string.h>

#include "core/mem.h"
#include "device/device.h"

static co_status host_alloc(void **out, co_device *device, size_t bytes, co_memory kind)
{
    (void)device;
    (void)kind;
    *out = co_calloc_aligned(bytes, 1);
    return *out ? CO_OK : CO_E_NOMEM;
}

static void host_free(co_device *device, void *block, co_memory kind)
{
    (void)device;
    (void)kind;
    co_free(block);
}

static void host_forget(co_device *device, void *at, size_t bytes)
{
    (void)device;
    co_mem_forget(at, bytes);
}

static co_status host_queue_create(co_queue **out, co_device *device)
{
    (void)device;
    *out = NULL;
    return CO_OK;
}

static void host_queue_destroy(co_queue *queue)
{
    (void)queue;
}

static co_status host_copy(co_queue *queue, void *to, const void *from, size_t bytes)
{
    (void)queue;
    if (bytes)
        memcpy(to, from, bytes);
    return CO_OK;
}

static co_status host_fill(co_queue *queue, void *to, int byte, size_t bytes)
{
    (void)queue;
    if (bytes)
        memset(to, byte, bytes);
    return CO_OK;
}

static co_status host_fence_create(co_fence **out, co_device *device)
{
    (void)device;
    *out = NULL;
    return CO_OK;
}

static void host_fence_destroy(co_fence *fence)
{
    (void)fence;
}

static co_status host_record(co_fence *fence, co_queue *queue)
{
    (void)fence;
    (void)queue;
    return CO_OK;
}

static co_status host_reached(bool *out, const co_fence *fence)
{
    (void)fence;
    *out = true;
    return CO_OK;
}

const co_device_ops co_device_host = {
    .name = "host",
    .summary = "the memory and the cores of this machine",
    .host_memory = true,
    .alloc = host_alloc,
    .free = host_free,
    .forget = host_forget,
    .queue_create = host_queue_create,
    .queue_destroy = host_queue_destroy,
    .copy = host_copy,
    .fill = host_fill,
    .fence_create = host_fence_create,
    .fence_destroy = host_fence_destroy,
    .record = host_record,
    .reached = host_reached,
};
