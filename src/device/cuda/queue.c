/*
 * queue.c - streams as queues, events as fences, graphs as captures.
 *
 * Streams do not wait for the default stream, so that nothing orders queues but fences. Captures
 * are relaxed: the calls that CUDA forbids in stricter ones, such as allocations, put nothing into
 * a stream, and other threads may make them meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "device/cuda/internal.h"
#include "kernels/cuda/vector.h"

static cuda_device *queue_device(const co_queue *queue)
{
    return (cuda_device *)queue->device;
}

static CUdeviceptr queue_address(const void *at)
{
    return (CUdeviceptr)(uintptr_t)at;
}

/* ---- failures that nobody is there to take ---- */

/* The thread's last failure. */
static void queue_keep(cuda_device *device)
{
    pthread_mutex_lock(&device->lock);
    if (!*device->why) {
        snprintf(device->why, sizeof(device->why), "%s", co_error_message());
        device->failed = co_error_status();
    }
    pthread_mutex_unlock(&device->lock);
}

void cuda_keep_failure(cuda_queue *queue)
{
    cuda_queue *first = queue_device(&queue->base)->capturing;

    if (!queue->capture) {
        queue_keep(queue_device(&queue->base));
    } else if (!*first->why) {
        snprintf(first->why, sizeof(first->why), "%s", co_error_message());
        first->failed = co_error_status();
    }
}

/* ---- queues ---- */

co_status cuda_queue_create(co_queue **out, co_device *base)
{
    const cuda_device *device = (const cuda_device *)base;
    CUdeviceptr squares = 0;
    cuda_queue *queue;
    CUresult result;

    CO_TRY(cuda_enter(device));
    queue = co_calloc(1, sizeof(*queue));
    if (!queue)
        return CO_E_NOMEM;
    queue->base.device = base;
    result = device->cu->cuMemAlloc(&squares, (2 + CUDA_SQUARES_ROOM) * sizeof(*queue->squares));
    if (result == CUDA_SUCCESS)
        result = device->cu->cuStreamCreate(&queue->stream, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS) {
        if (squares)
            (void)device->cu->cuMemFree(squares);
        co_free(queue);
        return cuda_fail(result, "GPU %d gives no stream", device->index);
    }
    queue->squares = (double *)(uintptr_t)squares; /* NOLINT(performance-no-int-to-ptr) */
    queue->blocks = queue->squares + 2;
    *out = &queue->base;
    return CO_OK;
}

void cuda_queue_destroy(co_queue *base)
{
    const cuda_driver *cu = queue_device(base)->cu;
    cuda_queue *queue = (cuda_queue *)base;

    if (cuda_enter(queue_device(base)) == CO_OK) {
        (void)cu->cuStreamSynchronize(queue->stream);
        (void)cu->cuStreamDestroy(queue->stream);
        (void)cu->cuMemFree((CUdeviceptr)(uintptr_t)queue->squares);
    }
    co_free(queue);
}

co_status cuda_copy(co_queue *base, void *to, const void *from, size_t bytes)
{
    const cuda_device *device = queue_device(base);
    CUresult result;

    if (bytes == 0)
        return CO_OK;
    CO_TRY(cuda_enter(device));
    result = device->cu->cuMemcpyAsync(queue_address(to), queue_address(from), bytes,
                                       ((cuda_queue *)base)->stream);
    return result == CUDA_SUCCESS ? CO_OK : cuda_fail(result, "a copy of %zu bytes", bytes);
}

/* The GPU does not write memory of the host that is not pinned: the host does, in the queue's turn.
 */
static co_status queue_fill_host(const cuda_device *device, const cuda_queue *queue, void *to,
                                 int byte, size_t bytes)
{
    CUresult result;

    if (queue->capture)
        return co_fail(CO_E_UNSUPPORTED, "cuda: a capture fills no memory of the host that is not "
                                         "pinned");
    result = device->cu->cuStreamSynchronize(queue->stream);
    if (result != CUDA_SUCCESS)
        return cuda_fail(result, "the work before a fill of %zu bytes", bytes);
    memset(to, byte, bytes);
    return CO_OK;
}

co_status cuda_fill(co_queue *base, void *to, int byte, size_t bytes)
{
    const cuda_device *device = queue_device(base);
    const cuda_queue *queue = (const cuda_queue *)base;
    CUmemorytype type = (CUmemorytype)0;
    CUresult result;

    if (bytes == 0)
        return CO_OK;
    CO_TRY(cuda_enter(device));
    if (device->cu->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                          queue_address(to)) != CUDA_SUCCESS)
        return queue_fill_host(device, queue, to, byte, bytes);
    result =
        device->cu->cuMemsetD8Async(queue_address(to), (unsigned char)byte, bytes, queue->stream);
    return result == CUDA_SUCCESS ? CO_OK : cuda_fail(result, "a fill of %zu bytes", bytes);
}

/* ---- fences ---- */

static co_status queue_create_fence(co_fence **out, co_device *base, unsigned flags)
{
    const cuda_device *device = (const cuda_device *)base;
    cuda_fence *fence;
    CUresult result;

    CO_TRY(cuda_enter(device));
    fence = co_calloc(1, sizeof(*fence));
    if (!fence)
        return CO_E_NOMEM;
    fence->base.device = base;
    result = device->cu->cuEventCreate(&fence->event, flags);
    if (result != CUDA_SUCCESS) {
        co_free(fence);
        return cuda_fail(result, "GPU %d gives no event", device->index);
    }
    *out = &fence->base;
    return CO_OK;
}

co_status cuda_fence_create(co_fence **out, co_device *base)
{
    return queue_create_fence(out, base, CU_EVENT_DISABLE_TIMING);
}

co_status cuda_timed_fence_create(co_fence **out, co_device *base)
{
    return queue_create_fence(out, base, CU_EVENT_DEFAULT);
}

co_status cuda_fence_seconds(double *out, const co_fence *begin, const co_fence *end)
{
    const cuda_device *device = (const cuda_device *)begin->device;
    float milliseconds = 0;
    CUresult result;

    CO_TRY(cuda_enter(device));
    result = device->cu->cuEventElapsedTime(&milliseconds, ((const cuda_fence *)begin)->event,
                                            ((const cuda_fence *)end)->event);
    *out = (double)milliseconds * 1e-3;
    return result == CUDA_SUCCESS ? CO_OK : cuda_fail(result, "the time between two events");
}

void cuda_fence_destroy(co_fence *base)
{
    const cuda_device *device = (const cuda_device *)base->device;
    cuda_fence *fence = (cuda_fence *)base;

    if (cuda_enter(device) == CO_OK)
        (void)device->cu->cuEventDestroy(fence->event);
    co_free(fence);
}

co_status cuda_record(co_fence *base, co_queue *queue)
{
    const cuda_device *device = queue_device(queue);
    cuda_fence *fence = (cuda_fence *)base;
    CUresult result;

    CO_TRY(cuda_enter(device));
    result = device->cu->cuEventRecord(fence->event, ((cuda_queue *)queue)->stream);
    if (result != CUDA_SUCCESS)
        return cuda_fail(result, "a point of a stream");
    fence->capture = ((cuda_queue *)queue)->capture;
    return CO_OK;
}

/* A queue that follows a point of a capture becomes part of it, as its stream does. */
static co_status queue_join(cuda_queue *queue, const cuda_fence *fence)
{
    cuda_queue *first = queue_device(&queue->base)->capturing;

    if (queue->capture == fence->capture)
        return CO_OK;
    if (queue->capture || !first || first->capture != fence->capture)
        return co_fail(CO_E_USAGE, "cuda: a queue and the fence that it follows are not of one "
                                   "capture");
    queue->capture = first->capture;
    queue->branch = first->branch;
    first->branch = queue;
    return CO_OK;
}

co_status cuda_follow(co_queue *queue, const co_fence *base)
{
    const cuda_device *device = queue_device(queue);
    CUresult result;

    CO_TRY(queue_join((cuda_queue *)queue, (const cuda_fence *)base));
    CO_TRY(cuda_enter(device));
    result = device->cu->cuStreamWaitEvent(((cuda_queue *)queue)->stream,
                                           ((const cuda_fence *)base)->event, 0);
    return result == CUDA_SUCCESS ? CO_OK : cuda_fail(result, "a stream's wait for another");
}

co_status cuda_reached(bool *out, const co_fence *base)
{
    cuda_device *device = (cuda_device *)base->device;
    char why[CUDA_WHY];
    co_status failed;
    CUresult result;

    if (((const cuda_fence *)base)->capture)
        return co_fail(CO_E_USAGE, "cuda: a fence of a capture is reached nowhere");
    CO_TRY(cuda_enter(device));
    result = device->cu->cuEventQuery(((const cuda_fence *)base)->event);
    *out = result == CUDA_SUCCESS;
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {
        (void)cuda_fail(result, "work on GPU %d (%s) has failed", device->index, device->gpu.name);
        queue_keep(device);
    }
    pthread_mutex_lock(&device->lock);
    memcpy(why, device->why, sizeof(why));
    failed = device->failed;
    pthread_mutex_unlock(&device->lock);
    return *why ? co_fail(failed, "%s", why) : CO_OK;
}

/* ---- captures ---- */

static co_status queue_keep_graph(co_capture **out, co_device *device, CUgraph graph)
{
    const cuda_driver *cu = ((const cuda_device *)device)->cu;
    cuda_capture *capture = co_calloc(1, sizeof(*capture));
    CUresult result;

    if (!capture)
        return CO_E_NOMEM;
    capture->base.device = device;
    result = cu->cuGraphInstantiateWithFlags(&capture->graph, graph, 0);
    if (result != CUDA_SUCCESS) {
        co_free(capture);
        return cuda_fail(result, "a graph of the work that was captured");
    }
    *out = &capture->base;
    return CO_OK;
}

static co_status queue_begin_capture(cuda_queue *queue)
{
    cuda_device *device = queue_device(&queue->base);
    CUresult result;

    if (device->capturing)
        return co_fail(CO_E_USAGE, "cuda: GPU %d has one capture at a time", device->index);
    CO_TRY(cuda_enter(device));
    result = device->cu->cuStreamBeginCapture(queue->stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (result != CUDA_SUCCESS)
        return cuda_fail(result, "the capture of a stream");
    device->capturing = queue;
    queue->capture = ++device->captures;
    *queue->why = 0;
    return CO_OK;
}

/* `st`: what the body has returned. *out: also with a failure, for the caller to destroy. */
static co_status queue_end_capture(CUgraph *out, cuda_queue *queue, co_status st)
{
    cuda_device *device = queue_device(&queue->base);
    const CUresult result = device->cu->cuStreamEndCapture(queue->stream, out);

    device->capturing = NULL;
    for (cuda_queue *q = queue, *next; q; q = next) {
        next = q->branch;
        q->branch = NULL;
        q->capture = 0;
    }
    if (st != CO_OK)
        return st;
    if (*queue->why)
        return co_fail(queue->failed, "%s", queue->why);
    return result == CUDA_SUCCESS ? CO_OK : cuda_fail(result, "the capture of a stream");
}

co_status cuda_capture_create(co_capture **out, co_queue *base, co_status (*body)(void *arg),
                              void *arg)
{
    cuda_queue *queue = (cuda_queue *)base;
    CUgraph graph = NULL;
    co_status st;

    CO_TRY(queue_begin_capture(queue));
    st = queue_end_capture(&graph, queue, body(arg));
    if (st == CO_OK)
        st = queue_keep_graph(out, base->device, graph);
    if (graph)
        (void)queue_device(base)->cu->cuGraphDestroy(graph);
    return st;
}

co_status cuda_replay(co_capture *capture, co_queue *queue)
{
    const cuda_device *device = queue_device(queue);
    CUresult result;

    CO_TRY(cuda_enter(device));
    result =
        device->cu->cuGraphLaunch(((cuda_capture *)capture)->graph, ((cuda_queue *)queue)->stream);
    return result == CUDA_SUCCESS ? CO_OK : cuda_fail(result, "the replay of captured work");
}

void cuda_capture_destroy(co_capture *base)
{
    const cuda_device *device = (const cuda_device *)base->device;

    if (cuda_enter(device) == CO_OK)
        (void)device->cu->cuGraphExecDestroy(((cuda_capture *)base)->graph);
    co_free(base);
}
