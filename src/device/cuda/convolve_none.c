/* convolve_none.c - a build without the header of cuDNN. */
#include "device/cuda/convolve.h"
#include "device/cuda/internal.h"

#define CONV_NONE "cuDNN is not in this build"

co_status co_cuda_dnn(char *out, size_t size)
{
    (void)out;
    (void)size;
    return co_fail(CO_E_UNSUPPORTED, "cuda: " CONV_NONE "; install its header (CUDA's repository: "
                                     "libcudnn9-dev-cuda-13), and build again");
}

co_status cuda_conv_open(cuda_device *device)
{
    (void)device;
    return CO_OK;
}

void cuda_conv_close(cuda_device *device)
{
    (void)device;
}

co_status cuda_conv_find(const cuda_conv **out, const char **why, co_device *base,
                         const cuda_conv_shape *shape)
{
    (void)out;
    (void)base;
    (void)shape;
    *why = CONV_NONE;
    return co_fail(CO_E_UNSUPPORTED, "cuda: " CONV_NONE);
}

size_t cuda_conv_workspace(const cuda_conv *conv)
{
    (void)conv;
    return 0;
}

co_status cuda_conv_run(const cuda_conv *conv, co_queue *queue, const cuda_conv_operands *operands)
{
    (void)conv;
    (void)queue;
    (void)operands;
    return co_fail(CO_E_UNSUPPORTED, "cuda: " CONV_NONE);
}
