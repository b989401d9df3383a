/* kernel.c - modules and launches of the stand-in: the kernels are compiled into it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mem.h"
#include "standin/block_serial.h"
#include "standin/standin.h"

#define MAX_ARGUMENT 256
#define MAX_BLOCKS   65535
#define MAX_THREADS  1024

_Thread_local serial_place serial_at;

static const serial_kernel *kernels;

void serial_add(serial_kernel *kernel)
{
    kernel->next = kernels;
    kernels = kernel;
}

typedef struct launch {
    const serial_kernel *kernel;
    uint32_t threads, blocks;
    uint64_t argument[MAX_ARGUMENT / sizeof(uint64_t)];
} launch;

/* Addresses of the device in the argument become a worker's. */
static co_status run(void *what, mock_memory *memory)
{
    launch *l = what;

    for (size_t i = 0; i < l->kernel->size / sizeof(*l->argument); i++)
        l->argument[i] = (uintptr_t)mock_memory_reach(memory, standin_at(l->argument[i]));
    for (uint32_t block = 0; block < l->blocks; block++) {
        serial_at = (serial_place){0, l->threads, block, l->blocks};
        l->kernel->run(l->argument);
    }
    return CO_OK;
}

/* Code is what nvrtc.c makes. */
STANDIN_EXPORT CUresult CUDAAPI cuModuleLoadData(CUmodule *out, const void *image)
{
    if (!standin_device())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (memcmp(image, STANDIN_CODE, sizeof(STANDIN_CODE)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmodule)(void *)&kernels;
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule module)
{
    (void)module;
    return standin_device() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

STANDIN_EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction *out, CUmodule module,
                                                    const char *name)
{
    const serial_kernel *kernel = kernels;

    (void)module;
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    *out = (CUfunction)kernel;
    return kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Whether this kernel is the one that its process loses its GPU by. */
static bool is_fatal(void)
{
    static _Atomic int launches;
    const char *file = getenv(STANDIN_LOSE), *at = getenv(STANDIN_AT);

    return file && at && atomic_fetch_add(&launches, 1) + 1 >= atoi(at) && unlink(file) == 0;
}

STANDIN_EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned blocks,
                                               unsigned blocks_y, unsigned blocks_z,
                                               unsigned threads, unsigned threads_y,
                                               unsigned threads_z, unsigned shared, CUstream stream,
                                               void **parameters, void **extra)
{
    launch l = {(const serial_kernel *)(const void *)function, threads, blocks, {0}};

    if (!standin_device())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1 || shared || extra ||
        blocks < 1 || blocks > MAX_BLOCKS || threads < 1 || threads > MAX_THREADS ||
        l.kernel->size > MAX_ARGUMENT)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_fatal())
        mock_break(standin_device());
    memcpy(l.argument, parameters[0], l.kernel->size);
    return standin_result(mock_enqueue((co_queue *)(void *)stream, run, &l, sizeof(l)));
}
