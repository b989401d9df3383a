/* calls.c - opens the CUDA driver and NVRTC, and words their errors. */
#include "device/cuda/calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CALLS_DRIVER      "libcuda.so.1"
#define CALLS_MIN_VERSION 12000
#define CALLS_MIN_DRIVER  "525.60"

static const char *const calls_driver_names[] = {CUDA_DRIVER_FUNCTIONS(CUDA_NAME)};
static const char *const calls_compiler_names[] = {CUDA_COMPILER_FUNCTIONS(CUDA_NAME)};

static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock until they are open, then constant. */
static bool calls_have_driver, calls_have_compiler;
static cuda_driver calls_driver;
static cuda_compiler calls_compiler;

/* ---- errors ---- */

/* The context, and with it all memory of this process on the GPU, is gone. */
static bool calls_is_loss(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN:
        return true;
    default:
        return false;
    }
}

static const char *calls_remedy(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_NO_DEVICE:
        return "no GPU is visible to this process: see nvidia-smi, CUDA_VISIBLE_DEVICES, and the "
               "options of a container";
    case CUDA_ERROR_STUB_LIBRARY:
        return "this libcuda.so.1 is the one to link against; remove its folder from "
               "LD_LIBRARY_PATH";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "the driver was updated since the system started: start it again";
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return "the GPUs' fabric is not ready: is nvidia-fabricmanager running?";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_OPERATING_SYSTEM:
        return "another process may hold the GPU, or this user may not open /dev/nvidia*";
    case CUDA_ERROR_OUT_OF_MEMORY:
        return "a smaller batch needs less; nvidia-smi shows who uses the rest";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        return "the driver is older than the compiler NVRTC: update it";
    default:
        return calls_is_loss(result)
                   ? "the GPU is lost to this process; the system's log (Xid) has "
                     "the reason"
                   : NULL;
    }
}

co_status cuda_fail(CUresult result, const char *fmt, ...)
{
    const char *name = NULL, *text = NULL, *remedy = calls_remedy(result);
    char what[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    if (calls_driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
        name = "an unknown error";
    if (calls_driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
        text = "the driver has no text for it";
    return co_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? CO_E_NOMEM
                   : calls_is_loss(result)            ? CO_E_PEER
                                                      : CO_E_FAILED,
                   "cuda: %s: %s (%d): %s%s%s", what, name, (int)result, text, remedy ? "; " : "",
                   remedy ? remedy : "");
}

/* ---- opening ---- */

/* The first name that is missing. */
static const char *calls_fill(const cuda_library *library, void *handle)
{
    for (size_t i = 0; i < library->n; i++) {
        void *function = dlsym(handle, library->function[i]);

        if (!function)
            return library->function[i];
        memcpy((char *)library->table + i * sizeof(function), &function, sizeof(function));
    }
    return NULL;
}

bool cuda_open_library(const cuda_library *library, const char *name, int latest, int first)
{
    for (int major = latest; major >= first; major--) {
        char file[64];
        void *handle;

        snprintf(file, sizeof(file), "lib%s.so.%d", name, major);
        handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (handle && !calls_fill(library, handle))
            return true;
        if (handle)
            dlclose(handle);
    }
    return false;
}

static co_status calls_too_old(int version)
{
    return co_fail(CO_E_UNSUPPORTED,
                   "cuda: the driver is for CUDA %d.%d, and %d.%d is needed: install driver %s or "
                   "later",
                   version / 1000, version % 1000 / 10, CALLS_MIN_VERSION / 1000,
                   CALLS_MIN_VERSION % 1000 / 10, CALLS_MIN_DRIVER);
}

static co_status calls_start_driver(void)
{
    const cuda_library library = {calls_driver_names, sizeof(calls_driver) / sizeof(void *),
                                  &calls_driver};
    void *handle = dlopen(CALLS_DRIVER, RTLD_NOW | RTLD_LOCAL);
    const char *missing;
    CUresult result;
    int version = 0;

    if (!handle)
        return co_fail(CO_E_UNSUPPORTED,
                       "cuda: no driver of NVIDIA (" CALLS_DRIVER "); install it (Debian: "
                       "nvidia-driver)");
    missing = calls_fill(&library, handle);
    if (!missing && calls_driver.cuDriverGetVersion(&version) != CUDA_SUCCESS)
        missing = "an answer of cuDriverGetVersion";
    if (!missing && version < CALLS_MIN_VERSION)
        return calls_too_old(version);
    if (missing)
        return co_fail(CO_E_UNSUPPORTED,
                       "cuda: " CALLS_DRIVER " is without %s: install driver %s or later", missing,
                       CALLS_MIN_DRIVER);
    result = calls_driver.cuInit(0);
    if (result != CUDA_SUCCESS) {
        (void)cuda_fail(result, "the driver does not start");
        return co_fail(CO_E_UNSUPPORTED, "%s", co_error_message());
    }
    return CO_OK;
}

co_status cuda_open_driver(const cuda_driver **out, int *version)
{
    co_status st = CO_OK;

    pthread_mutex_lock(&calls_lock);
    if (!calls_have_driver)
        st = calls_start_driver();
    calls_have_driver = st == CO_OK;
    pthread_mutex_unlock(&calls_lock);
    CO_TRY(st);
    *out = &calls_driver;
    if (calls_driver.cuDriverGetVersion(version) != CUDA_SUCCESS)
        *version = CALLS_MIN_VERSION;
    return CO_OK;
}

int cuda_latest_major(int driver_version)
{
    const int major = driver_version / 1000;

    return major < CUDA_LATEST_MAJOR ? major : CUDA_LATEST_MAJOR;
}

static co_status calls_start_compiler(int driver_version)
{
    const cuda_library library = {calls_compiler_names, sizeof(calls_compiler) / sizeof(void *),
                                  &calls_compiler};
    const int latest = cuda_latest_major(driver_version);

    if (cuda_open_library(&library, "nvrtc", latest, CUDA_FIRST_MAJOR))
        return CO_OK;
    return co_fail(CO_E_UNSUPPORTED,
                   "cuda: the compiler NVRTC is missing (libnvrtc.so.%d); install it (CUDA's "
                   "repository: cuda-nvrtc-%d-0; Debian: libnvrtc12)",
                   latest, latest);
}

co_status cuda_open_compiler(const cuda_compiler **out, int driver_version)
{
    co_status st = CO_OK;

    pthread_mutex_lock(&calls_lock);
    if (!calls_have_compiler)
        st = calls_start_compiler(driver_version);
    calls_have_compiler = st == CO_OK;
    pthread_mutex_unlock(&calls_lock);
    CO_TRY(st);
    *out = &calls_compiler;
    return CO_OK;
}
