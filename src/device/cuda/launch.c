/* launch.c - the kernels of a GPU: loaded with the device, and launched on its streams. */
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "device/cuda/compile.h"
#include "device/cuda/internal.h"
#include "kernels/cuda/block.h"

/* Enough to fill any GPU; threads take several elements where there are more. */
#define LAUNCH_FULL       2048
#define LAUNCH_MAX_BLOCKS 65535

#define LAUNCH_FILE(file) #file,
static const char *const launch_files[] = {CUDA_FILES(LAUNCH_FILE)};

#define LAUNCH_NAME(file, name) {CUDA_IN_##file, #name},
static const struct {
    cuda_file file;
    const char *name;
} launch_kernels[] = {CUDA_KERNELS(LAUNCH_NAME)};

static int launch_capability(const cuda_device *device)
{
    return device->gpu.major * 10 + device->gpu.minor;
}

static co_status launch_load(cuda_device *device, const cuda_compiler *rtc, unsigned file)
{
    const int arch = launch_capability(device);
    CUmodule *module = &device->module[file];
    char path[64], *code = NULL;
    CUresult result;
    size_t size = 0;

    snprintf(path, sizeof(path), "kernels/cuda/%s.cu", launch_files[file]);
    CO_TRY(cuda_compile_once(&code, &size, rtc, path, arch));
    result = device->cu->cuModuleLoadData(module, code);
    co_free(code);
    if (result != CUDA_SUCCESS)
        return cuda_fail(result, "the kernels of %s on GPU %d (%s)", path, device->index,
                         device->gpu.name);
    for (int k = 0; k < CUDA_KERNEL_COUNT; k++) {
        if (launch_kernels[k].file != file)
            continue;
        result =
            device->cu->cuModuleGetFunction(&device->kernel[k], *module, launch_kernels[k].name);
        if (result != CUDA_SUCCESS)
            return cuda_fail(result, "the kernel %s", launch_kernels[k].name);
    }
    return CO_OK;
}

co_status cuda_load_kernels(cuda_device *device)
{
    const cuda_compiler *rtc = NULL;

    CO_TRY(cuda_open_compiler(&rtc, device->version));
    for (unsigned file = 0; file < CUDA_FILE_COUNT; file++)
        CO_TRY(launch_load(device, rtc, file));
    return CO_OK;
}

void cuda_unload_kernels(cuda_device *device)
{
    for (unsigned file = 0; file < CUDA_FILE_COUNT; file++)
        if (device->module[file])
            (void)device->cu->cuModuleUnload(device->module[file]);
}

int cuda_capability(const co_queue *queue)
{
    return launch_capability((const cuda_device *)queue->device);
}

static void launch(co_queue *base, cuda_kernel kernel, unsigned blocks, void *args)
{
    const cuda_device *device = (const cuda_device *)base->device;
    cuda_queue *queue = (cuda_queue *)base;
    void *parameters[] = {args};
    co_status st = cuda_enter(device);
    CUresult result;

    if (st == CO_OK) {
        result = device->cu->cuLaunchKernel(device->kernel[kernel], blocks, 1, 1, CUDA_BLOCK, 1, 1,
                                            0, queue->stream, parameters, NULL);
        if (result != CUDA_SUCCESS)
            st = cuda_fail(result, "the kernel %s", launch_kernels[kernel].name);
    }
    if (st != CO_OK)
        cuda_keep_failure(queue);
}

void cuda_launch(co_queue *queue, cuda_kernel kernel, size_t n, void *args)
{
    const size_t blocks = (n + CUDA_BLOCK - 1) / CUDA_BLOCK;

    cuda_launch_blocks(queue, kernel, blocks < LAUNCH_FULL ? blocks : LAUNCH_FULL, args);
}

void cuda_launch_blocks(co_queue *queue, cuda_kernel kernel, size_t blocks, void *args)
{
    if (blocks > 0)
        launch(queue, kernel, (unsigned)(blocks < LAUNCH_MAX_BLOCKS ? blocks : LAUNCH_MAX_BLOCKS),
               args);
}
