/* probe.c - which GPUs, driver and compiler this machine has. Makes no context on a GPU. */
#include <stdio.h>
#include <string.h>

#include "core/open.h"
#include "device/cuda/internal.h"

#define PROBE_VERSION "/proc/driver/nvidia/version"

/* "580.82.07, ": the kernel's part of the driver, which CUDA itself does not name. */
static void probe_kernel_driver(char *out, size_t size)
{
    FILE *file = co_open_system(PROBE_VERSION);
    char line[256] = "";
    char *at = line, *rest = NULL;

    *out = 0;
    if (!file)
        return;
    if (!fgets(line, sizeof(line), file))
        *line = 0;
    fclose(file);
    for (char *word = strtok_r(at, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
        if (*word >= '0' && *word <= '9' && strchr(word, '.')) {
            snprintf(out, size, "%s, ", word);
            return;
        }
}

co_status cuda_probe_gpu(co_cuda_gpu *out, const cuda_driver *cu, int index)
{
    CUdevice device;
    size_t bytes = 0;
    CUresult result = cu->cuDeviceGet(&device, index);

    if (result == CUDA_SUCCESS)
        result = cu->cuDeviceGetName(out->name, sizeof(out->name), device);
    if (result == CUDA_SUCCESS)
        result = cu->cuDeviceTotalMem(&bytes, device);
    if (result == CUDA_SUCCESS)
        result = cu->cuDeviceGetAttribute(&out->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                          device);
    if (result == CUDA_SUCCESS)
        result = cu->cuDeviceGetAttribute(&out->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                          device);
    out->memory = bytes;
    return result == CUDA_SUCCESS ? CO_OK : cuda_fail(result, "GPU %d does not answer", index);
}

static co_status probe_peers(co_cuda_machine *out, const cuda_driver *cu)
{
    for (int i = 0; i < out->n; i++)
        for (int k = 0; k < out->n; k++) {
            CUdevice from = 0, to = 0;
            int can = 0;
            CUresult result = cu->cuDeviceGet(&from, i);

            if (result == CUDA_SUCCESS)
                result = cu->cuDeviceGet(&to, k);
            if (result == CUDA_SUCCESS && i != k)
                result = cu->cuDeviceCanAccessPeer(&can, from, to);
            if (result != CUDA_SUCCESS)
                return cuda_fail(result, "GPU %d does not answer", i);
            out->peers[i] |= (uint32_t)(can != 0) << k;
        }
    return CO_OK;
}

co_status co_cuda_probe(co_cuda_machine *out)
{
    const cuda_driver *cu = NULL;
    char kernel[64];
    CUresult result;
    int version = 0;

    memset(out, 0, sizeof(*out));
    CO_TRY(cuda_open_driver(&cu, &version));
    probe_kernel_driver(kernel, sizeof(kernel));
    snprintf(out->driver, sizeof(out->driver), "%sCUDA %d.%d", kernel, version / 1000,
             version % 1000 / 10);
    result = cu->cuDeviceGetCount(&out->n);
    if (result != CUDA_SUCCESS)
        return cuda_fail(result, "the driver does not count its GPUs");
    if (out->n == 0)
        return co_fail(CO_E_UNSUPPORTED, "cuda: the driver (%s) has no GPU", out->driver);
    if (out->n > CO_CUDA_MAX_GPUS)
        out->n = CO_CUDA_MAX_GPUS;
    for (int i = 0; i < out->n; i++)
        CO_TRY(cuda_probe_gpu(&out->gpu[i], cu, i));
    return probe_peers(out, cu);
}

co_status co_cuda_compiler(char *out, size_t size)
{
    const cuda_compiler *rtc = NULL;
    const cuda_driver *cu = NULL;
    int version = 0, major = 0, minor = 0;

    CO_TRY(cuda_open_driver(&cu, &version));
    CO_TRY(cuda_open_compiler(&rtc, version));
    if (rtc->nvrtcVersion(&major, &minor) != NVRTC_SUCCESS)
        return co_fail(CO_E_FAILED, "cuda: NVRTC does not name its version");
    snprintf(out, size, "NVRTC %d.%d", major, minor);
    return CO_OK;
}
