/*
 * mock.c - the mock device: protected memory (mock_memory.c) and queues that are threads
 * (mock_queue.c).
 */
#include "device/mock.h"

#include <pthread.h>

#include "core/mem.h"
#include "device/mock_queue.h"

static co_status mock_alloc(void **out, co_device *device, size_t bytes, co_memory kind)
{
    if (kind == CO_MEMORY_DEVICE || kind == CO_MEMORY_EXCHANGED)
        return mock_memory_take(out, &((mock_device *)device)->memory, bytes);
    *out = co_calloc_aligned(bytes, 1);
    return *out ? CO_OK : CO_E_NOMEM;
}

static void mock_free(co_device *device, void *at, co_memory kind)
{
    if (kind == CO_MEMORY_DEVICE || kind == CO_MEMORY_EXCHANGED)
        mock_memory_give(&((mock_device *)device)->memory, at);
    else
        co_free(at);
}

static const co_device_ops mock_ops = {
    .name = "mock",
    .summary = "threads of this process that behave like a device (tests)",
    .alloc = mock_alloc,
    .free = mock_free,
    .queue_create = mock_queue_create,
    .queue_destroy = mock_queue_destroy,
    .copy = mock_copy,
    .fill = mock_fill,
    .fence_create = mock_fence_create,
    .fence_destroy = mock_fence_destroy,
    .record = mock_record,
    .follow = mock_follow,
    .reached = mock_reached,
    .capture = mock_capture_create,
    .replay = mock_replay,
    .capture_destroy = mock_capture_destroy,
    .timed_fence_create = mock_timed_fence_create,
    .fence_seconds = mock_fence_seconds,
    .vector = &mock_vector,
    .optimizers = mock_optimizers,
};

/* ---- the device ---- */

co_status mock_open(co_device **out, mock_way way)
{
    mock_device *mock = co_calloc(1, sizeof(*mock));
    co_status st;

    if (!mock)
        return CO_E_NOMEM;
    st = mock_memory_open(&mock->memory, way);
    if (st != CO_OK) {
        co_free(mock);
        return st;
    }
    mock->ops = mock_ops;
    mock->base.ops = &mock->ops;
    pthread_mutex_init(&mock->lock, NULL);
    pthread_cond_init(&mock->changed, NULL);
    *out = &mock->base;
    return CO_OK;
}

void mock_close(co_device *device)
{
    mock_device *mock = (mock_device *)device;

    if (!mock)
        return;
    mock_memory_close(&mock->memory);
    pthread_cond_destroy(&mock->changed);
    pthread_mutex_destroy(&mock->lock);
    co_free(mock);
}

static void mock_set(co_device *device, bool held, bool broken)
{
    mock_device *mock = (mock_device *)device;

    pthread_mutex_lock(&mock->lock);
    mock->held = held;
    mock->broken |= broken;
    while (broken && mock->busy)
        pthread_cond_wait(&mock->changed, &mock->lock);
    pthread_cond_broadcast(&mock->changed);
    pthread_mutex_unlock(&mock->lock);
}

void mock_hold(co_device *device)
{
    mock_set(device, true, false);
}

void mock_go_on(co_device *device)
{
    mock_set(device, false, false);
}

void mock_break(co_device *device)
{
    mock_set(device, false, true);
}

uint64_t mock_done(co_device *device)
{
    mock_device *mock = (mock_device *)device;
    uint64_t done;

    pthread_mutex_lock(&mock->lock);
    done = mock->done;
    pthread_mutex_unlock(&mock->lock);
    return done;
}

void mock_log(co_device *device, mock_entry *entries, size_t max)
{
    mock_device *mock = (mock_device *)device;

    pthread_mutex_lock(&mock->lock);
    mock->entry = entries;
    mock->n_entry = 0;
    mock->max_entry = max;
    pthread_mutex_unlock(&mock->lock);
}

size_t mock_logged(co_device *device)
{
    mock_device *mock = (mock_device *)device;
    size_t n;

    pthread_mutex_lock(&mock->lock);
    n = mock->n_entry;
    pthread_mutex_unlock(&mock->lock);
    return n;
}

uint64_t mock_trace(co_device *device)
{
    mock_device *mock = (mock_device *)device;
    uint64_t trace;

    pthread_mutex_lock(&mock->lock);
    trace = mock->trace;
    mock->trace = 0;
    pthread_mutex_unlock(&mock->lock);
    return trace;
}
