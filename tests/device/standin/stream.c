/* stream.c - streams, events and graphs of the stand-in: queues, fences and captures of the mock.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "standin/standin.h"
#include "waits.h"

/* As in device/cuda/calls.h. */
#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end);

static co_queue *queue_of(CUstream stream)
{
    return (co_queue *)(void *)stream;
}

static co_fence *fence_of(CUevent event)
{
    return (co_fence *)(void *)event;
}

static bool is_capturing(CUstream stream)
{
    return ((const mock_queue *)queue_of(stream))->capture != NULL;
}

static bool is_branch(CUstream stream)
{
    return ((const mock_queue *)queue_of(stream))->branch != 0;
}

/* ---- streams ---- */

STANDIN_EXPORT CUresult CUDAAPI cuStreamCreate(CUstream *out, unsigned flags)
{
    co_queue *queue = NULL;
    co_status st;

    if (!standin_device())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_NOT_SUPPORTED;
    st = co_queue_create(&queue, standin_device());
    *out = (CUstream)(void *)queue;
    return standin_result(st);
}

STANDIN_EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream stream)
{
    co_queue_destroy(queue_of(stream));
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream stream)
{
    if (is_capturing(stream))
        return CUDA_ERROR_NOT_SUPPORTED;
    return standin_result(co_queue_wait(queue_of(stream), WAITS_MS));
}

STANDIN_EXPORT CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                              CUstream stream)
{
    if (!standin_device())
        return CUDA_ERROR_INVALID_CONTEXT;
    return standin_result(mock_copy(queue_of(stream), standin_at(to), standin_at(from), bytes));
}

/* A GPU writes its own memory and what is pinned. */
STANDIN_EXPORT CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t n,
                                                CUstream stream)
{
    CUmemorytype type;

    if (!standin_device())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, to) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    return standin_result(mock_fill(queue_of(stream), standin_at(to), byte, n));
}

/* ---- events ---- */

STANDIN_EXPORT CUresult CUDAAPI cuEventCreate(CUevent *out, unsigned flags)
{
    co_fence *fence = NULL;
    co_status st;

    if (!standin_device())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (flags != CU_EVENT_DISABLE_TIMING && flags != CU_EVENT_DEFAULT)
        return CUDA_ERROR_NOT_SUPPORTED;
    st = flags == CU_EVENT_DEFAULT ? mock_timed_fence_create(&fence, standin_device())
                                   : co_fence_create(&fence, standin_device());
    *out = (CUevent)(void *)fence;
    return standin_result(st);
}

STANDIN_EXPORT CUresult CUDAAPI cuEventDestroy(CUevent event)
{
    co_fence_destroy(fence_of(event));
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream)
{
    if (!standin_device())
        return CUDA_ERROR_INVALID_CONTEXT;
    return standin_result(co_fence_record(fence_of(event), queue_of(stream)));
}

STANDIN_EXPORT CUresult CUDAAPI cuEventQuery(CUevent event)
{
    bool reached = false;
    co_status st;

    if (!standin_device())
        return CUDA_ERROR_INVALID_CONTEXT;
    st = co_fence_reached(&reached, fence_of(event));
    return st == CO_OK && !reached ? CUDA_ERROR_NOT_READY : standin_result(st);
}

STANDIN_EXPORT CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end)
{
    double seconds = 0;
    const co_status st = mock_fence_seconds(&seconds, fence_of(begin), fence_of(end));

    *milliseconds = (float)(seconds * 1e3);
    return st == CO_OK ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STANDIN_EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    if (flags != CU_EVENT_WAIT_DEFAULT)
        return CUDA_ERROR_NOT_SUPPORTED;
    return standin_result(co_queue_follow(queue_of(stream), fence_of(event)));
}

/* ---- graphs ---- */

/* What a stream was given while it was captured: of a graph, and then of what is launched, too. */
struct CUgraph_st {
    co_capture *capture; /* owned */
    int uses;
};

static CUresult give_up(struct CUgraph_st *graph)
{
    if (--graph->uses == 0) {
        co_capture_destroy(graph->capture);
        free(graph);
    }
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    if (mode != CU_STREAM_CAPTURE_MODE_RELAXED || is_capturing(stream))
        return CUDA_ERROR_NOT_SUPPORTED;
    return standin_result(mock_capture_begin(queue_of(stream)));
}

STANDIN_EXPORT CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph *out)
{
    struct CUgraph_st *graph = malloc(sizeof(*graph));

    if (!graph || !is_capturing(stream) || is_branch(stream)) {
        free(graph);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *graph = (struct CUgraph_st){.uses = 1};
    if (mock_capture_end(&graph->capture, queue_of(stream)) != CO_OK) {
        free(graph);
        return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    *out = graph;
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph,
                                                            unsigned long long flags)
{
    if (flags)
        return CUDA_ERROR_NOT_SUPPORTED;
    graph->uses++;
    *out = (CUgraphExec)(void *)graph;
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuGraphDestroy(CUgraph graph)
{
    return give_up(graph);
}

static void count_launch(void)
{
    const char *path = getenv(STANDIN_GRAPHS);
    const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

    if (file < 0)
        return;
    if (write(file, "+", 1) != 1)
        abort();
    close(file);
}

STANDIN_EXPORT CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    const struct CUgraph_st *graph = (const struct CUgraph_st *)(const void *)exec;

    count_launch();
    return standin_result(co_capture_replay(graph->capture, queue_of(stream)));
}

STANDIN_EXPORT CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec)
{
    return give_up((struct CUgraph_st *)(void *)exec);
}
