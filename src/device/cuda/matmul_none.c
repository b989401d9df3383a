/* matmul_none.c - a build without the header of cuBLASLt. */
#include "device/cuda/internal.h"
#include "device/cuda/matmul.h"

#define MATMUL_NONE "cuBLASLt is not in this build"

co_status co_cuda_blas(char *out, size_t size)
{
    (void)out;
    (void)size;
    return co_fail(CO_E_UNSUPPORTED,
                   "cuda: " MATMUL_NONE "; install its header (CUDA's repository: "
                   "libcublas-dev-13-0), and build again");
}

co_status cuda_matmul_open(cuda_device *device)
{
    (void)device;
    return CO_OK;
}

void cuda_matmul_close(cuda_device *device)
{
    (void)device;
}

const char *cuda_matmul_refuses(co_device *device, const cuda_matmul_shape *shape)
{
    (void)device;
    (void)shape;
    return MATMUL_NONE;
}

co_status cuda_matmul_create(cuda_matmul **out, co_device *base, const cuda_matmul_shape *shape)
{
    (void)out;
    (void)base;
    (void)shape;
    return co_fail(CO_E_UNSUPPORTED, "cuda: " MATMUL_NONE);
}

void cuda_matmul_destroy(cuda_matmul *matmul)
{
    (void)matmul;
}

size_t cuda_matmul_workspace(const cuda_matmul *matmul)
{
    (void)matmul;
    return 0;
}

co_status cuda_matmul_run(const cuda_matmul *matmul, co_queue *queue,
                          const cuda_matmul_operands *operands)
{
    (void)matmul;
    (void)queue;
    (void)operands;
    return co_fail(CO_E_UNSUPPORTED, "cuda: " MATMUL_NONE);
}
