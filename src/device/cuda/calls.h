/*
 * calls.h - the functions of the CUDA driver and of NVRTC that Cohort uses, as tables that are
 * filled in when the libraries are opened. CUDA's headers choose the version of each function.
 */
#ifndef CO_DEVICE_CUDA_CALLS_H
#define CO_DEVICE_CUDA_CALLS_H

#include <cuda.h>
#include <nvrtc.h>
#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>

/* Drivers before CUDA 12.8 lack the second version of it, and the first one does. */
#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end);

#define CUDA_DRIVER_FUNCTIONS(X)                                                                   \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxSetCurrent)                                                                             \
    X(cuDeviceCanAccessPeer)                                                                       \
    X(cuMemGetInfo)                                                                                \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemFreeHost)                                                                               \
    X(cuPointerGetAttribute)                                                                       \
    X(cuMemcpyAsync)                                                                               \
    X(cuMemsetD8Async)                                                                             \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamWaitEvent)                                                                           \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventQuery)                                                                                \
    X(cuEventElapsedTime)                                                                          \
    X(cuStreamBeginCapture)                                                                        \
    X(cuStreamEndCapture)                                                                          \
    X(cuGraphInstantiateWithFlags)                                                                 \
    X(cuGraphDestroy)                                                                              \
    X(cuGraphLaunch)                                                                               \
    X(cuGraphExecDestroy)                                                                          \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuLaunchKernel)

#define CUDA_COMPILER_FUNCTIONS(X)                                                                 \
    X(nvrtcVersion)                                                                                \
    X(nvrtcGetErrorString)                                                                         \
    X(nvrtcCreateProgram)                                                                          \
    X(nvrtcDestroyProgram)                                                                         \
    X(nvrtcCompileProgram)                                                                         \
    X(nvrtcGetProgramLogSize)                                                                      \
    X(nvrtcGetProgramLog)                                                                          \
    X(nvrtcGetCUBINSize)                                                                           \
    X(nvrtcGetCUBIN)

/* Releases of CUDA whose libraries are known. */
#define CUDA_FIRST_MAJOR  12
#define CUDA_LATEST_MAJOR 13

#define CUDA_MEMBER(name) __typeof__(name) *name;
#define CUDA_TEXT_(name)  #name
#define CUDA_TEXT(name)   CUDA_TEXT_(name) /* after the headers have added its version */
#define CUDA_NAME(name)   CUDA_TEXT(name),

typedef struct cuda_driver {
    CUDA_DRIVER_FUNCTIONS(CUDA_MEMBER)
} cuda_driver;

typedef struct cuda_compiler {
    CUDA_COMPILER_FUNCTIONS(CUDA_MEMBER)
} cuda_compiler;

/* Functions of a library, and where they go: a table whose members are all pointers to functions.
 */
typedef struct cuda_library {
    const char *const *function;
    size_t n;
    void *table;
} cuda_library;

/* "lib<name>.so.<major>" of the latest of these majors that is there with all functions; it stays
   open. False: none. */
bool cuda_open_library(const cuda_library *library, const char *name, int latest, int first);
/* A driver loads the code of libraries of up to its own major version. */
int cuda_latest_major(int driver_version);

/* Opened and initialised by the first call, for the life of the process. CO_E_UNSUPPORTED: no
   driver, one that is too old, or one that refuses. *version: 13000 is CUDA 13.0. */
co_status cuda_open_driver(const cuda_driver **out, int *version);
/* One that the driver of this version can load code of. CO_E_UNSUPPORTED. */
co_status cuda_open_compiler(const cuda_compiler **out, int driver_version);

/* The message: what could not be done, CUDA's name and text of the error, and the remedy.
   CO_E_NOMEM; CO_E_PEER: the GPU is lost to this rank, as a rank is that dies; CO_E_FAILED. */
co_status cuda_fail(CUresult result, const char *fmt, ...) CO_PRINTF(2, 3);

#endif
