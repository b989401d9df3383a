/*
 * nccl_comm.c - NCCL without GPUs: the library, communicators, which must not block, so that all
 * that needs other ranks is first under way, and buffers. Every setting that Cohort does not use is
 * refused. Found as libnccl.so.2; with STANDIN_NCCL_OLDER as 2.18 is, which has no buffers.
 */
#include "standin/nccl_comm.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ABORT_WAIT 40000 /* polls until operations of an aborted communicator have ended */

static _Atomic(struct ncclComm *) all_comms;

/* ---- the library, and communicators ---- */

STANDIN_EXPORT ncclResult_t ncclGetVersion(int *version)
{
#ifdef STANDIN_NCCL_OLDER
    *version = NCCL_VERSION(2, 18, 5);
#else
    *version = NCCL_VERSION_CODE;
#endif
    return ncclSuccess;
}

STANDIN_EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
    (void)result;
    return "of the stand-in";
}

STANDIN_EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

/* The file, which goes with the process that has made it, by its name. */
STANDIN_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *out)
{
    const int file = memfd_create("nccl", MFD_CLOEXEC);

    memset(out, 0, sizeof(*out));
    if (file < 0 || ftruncate(file, sizeof(region)) != 0)
        return ncclSystemError;
    snprintf(out->internal, sizeof(out->internal), "/proc/%d/fd/%d", (int)getpid(), file);
    return ncclSuccess;
}

static bool is_plain(const ncclConfig_t *config)
{
    ncclConfig_t plain = NCCL_CONFIG_INITIALIZER;

    plain.blocking = 0;
    return config && memcmp(config, &plain, sizeof(plain)) == 0;
}

STANDIN_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id,
                                                   int rank, ncclConfig_t *config)
{
    const int file = open(id.internal, O_RDWR | O_CLOEXEC);
    ncclComm_t comm;
    void *shared = MAP_FAILED;

    if (file >= 0)
        shared = mmap(NULL, sizeof(region), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (!is_plain(config) || ranks < 2 || ranks > RANKS || rank < 0 || rank >= ranks)
        return ncclInvalidArgument;
    comm = shared != MAP_FAILED ? calloc(1, sizeof(*comm)) : NULL;
    if (!comm)
        return ncclSystemError;
    comm->shared = shared;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->next = atomic_exchange(&all_comms, comm);
    atomic_fetch_add(&comm->shared->joined, 1);
    *out = comm;
    return ncclInProgress;
}

STANDIN_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    const bool together = atomic_load(&comm->shared->joined) == comm->ranks &&
                          (!comm->leaving || atomic_load(&comm->shared->left) == comm->ranks);

    *state = together && comm->asked++ > 0 ? ncclSuccess : ncclInProgress;
    return ncclSuccess;
}

STANDIN_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    if (comm->leaving || atomic_load(&comm->jobs) || comm->begin)
        return ncclInvalidUsage;
    comm->leaving = true;
    atomic_fetch_add(&comm->shared->left, 1);
    return ncclInProgress;
}

STANDIN_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (!comm->leaving)
        return ncclInvalidUsage;
    atomic_store(&comm->aborted, true);
    munmap(comm->shared, sizeof(region));
    return ncclSuccess;
}

/* What a broken device has dropped never ends. */
STANDIN_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    atomic_store(&comm->aborted, true);
    for (int i = 0; atomic_load(&comm->running) && i < ABORT_WAIT; i++)
        co_clock_sleep_us(POLL_US);
    if (atomic_load(&comm->running))
        return ncclSystemError;
    munmap(comm->shared, sizeof(region));
    return ncclSuccess;
}

/* ---- buffers ---- */

#ifndef STANDIN_NCCL_OLDER
/* The buffer that ncclMemAlloc has given, of which a process has one. */
static _Atomic uintptr_t buffer;
static size_t buffer_bytes;
static _Atomic int registered;

/* A function of the driver beside this library. */
static void find(void *out, const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    *(void **)out = driver ? dlsym(driver, name) : NULL;
}

STANDIN_EXPORT ncclResult_t ncclMemAlloc(void **out, size_t bytes)
{
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUdeviceptr at = 0;

    find(&alloc, "cuMemAlloc_v2");
    if (atomic_load(&buffer) || !alloc || alloc(&at, bytes) != CUDA_SUCCESS)
        return ncclUnhandledCudaError;
    atomic_store(&buffer, (uintptr_t)at);
    buffer_bytes = bytes;
    *out = standin_at(at);
    return ncclSuccess;
}

STANDIN_EXPORT ncclResult_t ncclMemFree(void *block)
{
    CUresult (*give)(CUdeviceptr);

    find(&give, "cuMemFree_v2");
    for (const struct ncclComm *c = atomic_load(&all_comms); c; c = c->next)
        if (c->begin && !atomic_load(&c->aborted))
            abort(); /* what is registered is in use */
    if ((uintptr_t)block != atomic_load(&buffer) || !give)
        return ncclInvalidArgument;
    atomic_store(&buffer, 0);
    return give((CUdeviceptr)(uintptr_t)block) == CUDA_SUCCESS ? ncclSuccess
                                                               : ncclUnhandledCudaError;
}

STANDIN_EXPORT ncclResult_t ncclCommRegister(ncclComm_t comm, void *at, size_t bytes, void **handle)
{
    if (!at || (uintptr_t)at != atomic_load(&buffer) || bytes > buffer_bytes || comm->begin ||
        atomic_load(&comm->jobs))
        return ncclInvalidArgument;
    comm->begin = (uintptr_t)at;
    comm->end = comm->begin + bytes;
    atomic_fetch_add(&registered, 1);
    *handle = &comm->begin;
    return ncclSuccess;
}

STANDIN_EXPORT ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle)
{
    if (handle != &comm->begin || !comm->begin || atomic_load(&comm->running))
        return ncclInvalidArgument;
    comm->begin = comm->end = 0;
    return ncclSuccess;
}

standin_registered_fn standin_registered;

STANDIN_EXPORT int standin_registered(void)
{
    return atomic_load(&registered);
}
#endif
