/*
 * device.c - a GPU as a device: its context and its memory.
 *
 * The context is the primary one, which the process shares with other users of CUDA in it. Each
 * call makes it the calling thread's, as any thread may use the device.
 */
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "device/cuda/convolve.h"
#include "device/cuda/internal.h"
#include "device/cuda/matmul.h"
#include "device/cuda/nccl.h"

co_status cuda_enter(const cuda_device *device)
{
    const CUresult result = device->cu->cuCtxSetCurrent(device->context);

    return result == CUDA_SUCCESS ? CO_OK : cuda_fail(result, "GPU %d is lost", device->index);
}

/* ---- memory ---- */

static const char *device_kind(co_memory kind)
{
    return kind == CO_MEMORY_PINNED ? "pinned" : "the GPU's";
}

static co_status device_no_memory(const cuda_device *device, CUresult result, size_t bytes,
                                  co_memory kind)
{
    size_t left = 0, all = 0;

    if (kind == CO_MEMORY_PINNED || device->cu->cuMemGetInfo(&left, &all) != CUDA_SUCCESS)
        return cuda_fail(result, "%zu MiB of %s memory", bytes >> 20, device_kind(kind));
    return cuda_fail(result, "%zu MiB of the memory of GPU %d (%s), of whose %zu MiB %zu are left",
                     bytes >> 20, device->index, device->gpu.name, all >> 20, left >> 20);
}

/* Whether memory for exchange is NCCL's: by what there is when some is first taken. */
static bool device_asks_nccl(cuda_device *device)
{
    bool asks;

    pthread_mutex_lock(&device->lock);
    if (device->exchanged == CUDA_EXCHANGED_OPEN)
        device->exchanged =
            device->nccl && cuda_nccl_registers() ? CUDA_EXCHANGED_NCCL : CUDA_EXCHANGED_PLAIN;
    asks = device->exchanged == CUDA_EXCHANGED_NCCL;
    pthread_mutex_unlock(&device->lock);
    return asks;
}

static CUresult device_take_there(CUdeviceptr *at, cuda_device *device, size_t bytes,
                                  co_memory kind)
{
    void *block = NULL;

    if (kind != CO_MEMORY_EXCHANGED || !device_asks_nccl(device))
        return device->cu->cuMemAlloc(at, bytes);
    if (!cuda_nccl_alloc(&block, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *at = (CUdeviceptr)(uintptr_t)block;
    return CUDA_SUCCESS;
}

static void device_give_there(cuda_device *device, CUdeviceptr at, co_memory kind)
{
    if (kind == CO_MEMORY_EXCHANGED && device_asks_nccl(device))
        cuda_nccl_free((void *)(uintptr_t)at); /* NOLINT(performance-no-int-to-ptr): as below */
    else
        (void)device->cu->cuMemFree(at);
}

/* `bytes` is not 0. */
static CUresult device_take(void **out, cuda_device *device, size_t bytes, co_memory kind)
{
    CUdeviceptr at = 0;
    CUresult result;

    if (kind == CO_MEMORY_PINNED) {
        result = device->cu->cuMemHostAlloc(out, bytes, CU_MEMHOSTALLOC_PORTABLE);
        if (result == CUDA_SUCCESS)
            memset(*out, 0, bytes);
        return result;
    }
    result = device_take_there(&at, device, bytes, kind);
    if (result != CUDA_SUCCESS)
        return result;
    result = device->cu->cuMemsetD8Async(at, 0, bytes, device->zeroes);
    if (result == CUDA_SUCCESS)
        result = device->cu->cuStreamSynchronize(device->zeroes);
    if (result != CUDA_SUCCESS)
        device_give_there(device, at, kind);
    *out = (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr): an address of the GPU */
    return result;
}

static bool device_count(cuda_device *device, void *block, size_t bytes)
{
    bool counted;

    pthread_mutex_lock(&device->lock);
    counted = cuda_held_add(&device->held, block, bytes);
    pthread_mutex_unlock(&device->lock);
    return counted;
}

static co_status device_alloc(void **out, co_device *base, size_t bytes, co_memory kind)
{
    cuda_device *device = (cuda_device *)base;
    const size_t some = bytes ? bytes : 1;
    void *block = NULL;
    CUresult result;

    if (kind == CO_MEMORY_HOST) {
        *out = co_calloc_aligned(bytes, 1);
        return *out ? CO_OK : CO_E_NOMEM;
    }
    CO_TRY(cuda_enter(device));
    result =
        bytes > PTRDIFF_MAX ? CUDA_ERROR_OUT_OF_MEMORY : device_take(&block, device, some, kind);
    if (result != CUDA_SUCCESS)
        return device_no_memory(device, result, bytes, kind);
    if (kind != CO_MEMORY_PINNED && !device_count(device, block, some)) {
        device_give_there(device, (CUdeviceptr)(uintptr_t)block, kind);
        return CO_E_NOMEM;
    }
    *out = block;
    return CO_OK;
}

static void device_free(co_device *base, void *block, co_memory kind)
{
    cuda_device *device = (cuda_device *)base;

    if (kind == CO_MEMORY_DEVICE || kind == CO_MEMORY_EXCHANGED) {
        pthread_mutex_lock(&device->lock);
        cuda_held_remove(&device->held, block);
        pthread_mutex_unlock(&device->lock);
    }
    if (kind == CO_MEMORY_HOST)
        co_free(block);
    else if (cuda_enter(device) != CO_OK)
        return; /* the memory went with the context */
    else if (kind == CO_MEMORY_PINNED)
        (void)device->cu->cuMemFreeHost(block);
    else
        device_give_there(device, (CUdeviceptr)(uintptr_t)block, kind);
}

static size_t device_room(co_device *base)
{
    const cuda_device *device = (const cuda_device *)base;
    size_t left = 0, all = 0;

    if (cuda_enter(device) != CO_OK || device->cu->cuMemGetInfo(&left, &all) != CUDA_SUCCESS)
        return 0;
    return left;
}

static size_t device_peak(co_device *base)
{
    cuda_device *device = (cuda_device *)base;
    size_t peak;

    pthread_mutex_lock(&device->lock);
    peak = device->held.peak;
    pthread_mutex_unlock(&device->lock);
    return peak;
}

static const co_device_ops device_ops = {
    .name = "cuda",
    .summary = "a GPU of NVIDIA",
    .alloc = device_alloc,
    .free = device_free,
    .queue_create = cuda_queue_create,
    .queue_destroy = cuda_queue_destroy,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .fence_create = cuda_fence_create,
    .fence_destroy = cuda_fence_destroy,
    .record = cuda_record,
    .follow = cuda_follow,
    .reached = cuda_reached,
    .capture = cuda_capture_create,
    .replay = cuda_replay,
    .capture_destroy = cuda_capture_destroy,
    .vector = &cuda_vector,
    .optimizers = cuda_optimizers,
    .metrics = &cuda_metrics,
    .images = &cuda_images_table,
    .room = device_room,
    .peak = device_peak,
    .timed_fence_create = cuda_timed_fence_create,
    .fence_seconds = cuda_fence_seconds,
};

/* ---- the device ---- */

static co_status device_start(cuda_device *device)
{
    const cuda_driver *cu = device->cu;
    CUresult result;

    CO_TRY(cuda_probe_gpu(&device->gpu, cu, device->index));
    result = cu->cuDeviceGet(&device->handle, device->index);
    if (result == CUDA_SUCCESS)
        result = cu->cuDevicePrimaryCtxRetain(&device->context, device->handle);
    if (result != CUDA_SUCCESS)
        return cuda_fail(result, "GPU %d (%s) cannot be used", device->index, device->gpu.name);
    CO_TRY(cuda_enter(device));
    result = cu->cuStreamCreate(&device->zeroes, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS)
        return cuda_fail(result, "GPU %d (%s) gives no stream", device->index, device->gpu.name);
    CO_TRY(cuda_load_kernels(device));
    CO_TRY(cuda_matmul_open(device));
    return cuda_conv_open(device);
}

co_status co_cuda_open(co_device **out, const co_cuda_options *options)
{
    const int index = options->index;
    co_cuda_machine machine;
    cuda_device *device;
    co_status st;

    CO_TRY(co_cuda_probe(&machine));
    if (index < 0 || index >= machine.n)
        return co_fail(CO_E_USAGE, "cuda: no GPU %d; this machine has %d, from 0", index,
                       machine.n);
    device = co_calloc(1, sizeof(*device));
    if (!device)
        return CO_E_NOMEM;
    device->base.ops = &device_ops;
    device->index = index;
    device->tf32 = options->tf32;
    pthread_mutex_init(&device->lock, NULL);
    st = cuda_open_driver(&device->cu, &device->version);
    if (st == CO_OK)
        st = device_start(device);
    if (st == CO_OK)
        *out = &device->base;
    else
        co_cuda_close(&device->base);
    return st;
}

void co_cuda_close(co_device *device)
{
    cuda_device *gpu = (cuda_device *)device;

    if (!gpu)
        return;
    if (gpu->context && cuda_enter(gpu) == CO_OK) {
        cuda_conv_close(gpu);
        cuda_matmul_close(gpu);
        cuda_unload_kernels(gpu);
        if (gpu->zeroes)
            (void)gpu->cu->cuStreamDestroy(gpu->zeroes);
    }
    if (gpu->context)
        (void)gpu->cu->cuDevicePrimaryCtxRelease(gpu->handle);
    pthread_mutex_destroy(&gpu->lock);
    co_free(gpu->held.block);
    co_free(gpu);
}
