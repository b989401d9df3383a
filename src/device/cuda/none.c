/* none.c - a build without CUDA's headers. */
#include "device/cuda/cuda.h"

static co_status none_refuse(void)
{
    return co_fail(CO_E_UNSUPPORTED, "cuda: not in this build; install CUDA's headers (Debian: "
                                     "nvidia-cuda-dev 12 or later), and build again");
}

co_status co_cuda_probe(co_cuda_machine *out)
{
    (void)out;
    return none_refuse();
}

co_status co_cuda_compiler(char *out, size_t size)
{
    (void)out;
    (void)size;
    return none_refuse();
}

co_status co_cuda_blas(char *out, size_t size)
{
    (void)out;
    (void)size;
    return none_refuse();
}

co_status co_cuda_dnn(char *out, size_t size)
{
    return co_cuda_blas(out, size);
}

co_status co_cuda_open(co_device **out, const co_cuda_options *options)
{
    (void)out;
    (void)options;
    return none_refuse();
}

co_status co_cuda_roof(co_roof *out, co_device *device)
{
    (void)out;
    (void)device;
    return none_refuse();
}

void co_cuda_close(co_device *device)
{
    (void)device;
}
