/* driver.c - the GPU of the stand-in, its context and its memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "standin/standin.h"

/* Memory that cuMemAlloc or cuMemHostAlloc has given. */
typedef struct block {
    struct block *next;
    uintptr_t at;
    size_t bytes;
    CUmemorytype type;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static co_device *gpu;
static int holders;   /* of the primary context */
static CUdevice held; /* whose that is: one in each process */
static size_t used;
static block *blocks;

static _Thread_local co_device *current;

static int setting(const char *name, int fallback)
{
    const char *text = getenv(name);

    return text ? atoi(text) : fallback;
}

co_device *standin_device(void)
{
    return current;
}

CUresult standin_result(co_status st)
{
    if (st == CO_OK)
        return CUDA_SUCCESS;
    return st == CO_E_NOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_LAUNCH_FAILED;
}

STANDIN_EXPORT standin_break_fn standin_break;

void standin_break(void)
{
    mock_break(gpu);
}

/* ---- the machine ---- */

STANDIN_EXPORT CUresult CUDAAPI cuDriverGetVersion(int *version)
{
    *version = setting(STANDIN_VERSION, 13000);
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuInit(unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    return setting(STANDIN_GPUS, 1) ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

STANDIN_EXPORT CUresult CUDAAPI cuGetErrorName(CUresult error, const char **name)
{
    static const char *const names[] = {
        [CUDA_ERROR_INVALID_VALUE] = "CUDA_ERROR_INVALID_VALUE",
        [CUDA_ERROR_OUT_OF_MEMORY] = "CUDA_ERROR_OUT_OF_MEMORY",
        [CUDA_ERROR_NO_DEVICE] = "CUDA_ERROR_NO_DEVICE",
        [CUDA_ERROR_INVALID_CONTEXT] = "CUDA_ERROR_INVALID_CONTEXT",
        [CUDA_ERROR_LAUNCH_FAILED] = "CUDA_ERROR_LAUNCH_FAILED",
        [CUDA_ERROR_NOT_SUPPORTED] = "CUDA_ERROR_NOT_SUPPORTED",
    };

    if (error >= sizeof(names) / sizeof(names[0]) || !names[error])
        return CUDA_ERROR_INVALID_VALUE;
    *name = names[error];
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuGetErrorString(CUresult error, const char **text)
{
    (void)error;
    *text = "of the stand-in";
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    *count = setting(STANDIN_GPUS, 1);
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    if (ordinal < 0 || ordinal >= setting(STANDIN_GPUS, 1))
        return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetName(char *name, int size, CUdevice device)
{
    (void)device;
    snprintf(name, (size_t)size, "stand-in");
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = STANDIN_MEMORY;
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                                     CUdevice device)
{
    (void)device;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = 9;
    else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        *value = 0;
    else if (attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
        *value = 1 << 20;
    else
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

/* GPUs reach those whose number differs by one, so that some do not reach each other. */
STANDIN_EXPORT CUresult CUDAAPI cuDeviceCanAccessPeer(int *out, CUdevice device, CUdevice peer)
{
    if (device == peer)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (device ^ peer) == 1;
    return CUDA_SUCCESS;
}

/* ---- contexts ---- */

STANDIN_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    co_status st = CO_OK;

    pthread_mutex_lock(&lock);
    if (holders > 0 && device != held) {
        pthread_mutex_unlock(&lock);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    held = device;
    if (holders == 0)
        st = mock_open(&gpu, MOCK_TWICE);
    holders += st == CO_OK;
    *context = (CUcontext)(void *)gpu;
    pthread_mutex_unlock(&lock);
    return standin_result(st);
}

STANDIN_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device)
{
    CUresult result = CUDA_SUCCESS;

    (void)device;
    pthread_mutex_lock(&lock);
    if (--holders == 0) {
        result = blocks ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; /* a leak */
        mock_close(gpu);
        gpu = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (result != CUDA_SUCCESS)
        abort(); /* nobody looks at the result */
    return result;
}

STANDIN_EXPORT CUresult CUDAAPI cuCtxSetCurrent(CUcontext context)
{
    current = (co_device *)(void *)context;
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

static CUresult take(uintptr_t *out, size_t bytes, CUmemorytype type)
{
    mock_memory *memory = &((mock_device *)current)->memory;
    block *b = malloc(sizeof(*b));
    co_status st = CO_E_NOMEM;
    void *at = NULL;

    pthread_mutex_lock(&lock);
    if (b && type == CU_MEMORYTYPE_HOST && (at = co_calloc_aligned(bytes, 1)) != NULL)
        st = CO_OK;
    else if (b && type == CU_MEMORYTYPE_DEVICE && bytes <= STANDIN_MEMORY - used)
        st = mock_memory_take(&at, memory, bytes);
    if (st == CO_OK) {
        memset(mock_memory_reach(memory, at), 0xa5, bytes); /* nothing is zeroed */
        *b = (block){blocks, (uintptr_t)at, bytes, type};
        blocks = b;
        used += type == CU_MEMORYTYPE_DEVICE ? bytes : 0;
        *out = b->at;
    } else {
        free(b);
    }
    pthread_mutex_unlock(&lock);
    return standin_result(st);
}

static CUresult give(uintptr_t at, CUmemorytype type)
{
    block **link = &blocks, *b;

    pthread_mutex_lock(&lock);
    while (*link && ((*link)->at != at || (*link)->type != type))
        link = &(*link)->next;
    b = *link;
    if (b) {
        *link = b->next;
        used -= type == CU_MEMORYTYPE_DEVICE ? b->bytes : 0;
    }
    pthread_mutex_unlock(&lock);
    if (!b)
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_MEMORYTYPE_DEVICE)
        mock_memory_give(&((mock_device *)current)->memory, standin_at(at));
    else
        co_free(standin_at(at));
    free(b);
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuMemGetInfo(size_t *left, size_t *all)
{
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    *all = STANDIN_MEMORY;
    *left = STANDIN_MEMORY - used;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult CUDAAPI cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    uintptr_t at = 0;
    CUresult result;

    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    result = bytes ? take(&at, bytes, CU_MEMORYTYPE_DEVICE) : CUDA_ERROR_INVALID_VALUE;
    *out = at;
    return result;
}

STANDIN_EXPORT CUresult CUDAAPI cuMemFree(CUdeviceptr at)
{
    return current ? give((uintptr_t)at, CU_MEMORYTYPE_DEVICE) : CUDA_ERROR_INVALID_CONTEXT;
}

STANDIN_EXPORT CUresult CUDAAPI cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    uintptr_t at = 0;
    CUresult result;

    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (flags != CU_MEMHOSTALLOC_PORTABLE || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = take(&at, bytes, CU_MEMORYTYPE_HOST);
    *out = standin_at(at);
    return result;
}

STANDIN_EXPORT CUresult CUDAAPI cuMemFreeHost(void *at)
{
    return current ? give((uintptr_t)at, CU_MEMORYTYPE_HOST) : CUDA_ERROR_INVALID_CONTEXT;
}

STANDIN_EXPORT CUresult CUDAAPI cuPointerGetAttribute(void *out, CUpointer_attribute attribute,
                                                      CUdeviceptr at)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    for (const block *b = blocks; b; b = b->next)
        if (at >= b->at && at - b->at < b->bytes) {
            *(CUmemorytype *)out = b->type;
            result = CUDA_SUCCESS;
        }
    pthread_mutex_unlock(&lock);
    return result;
}
