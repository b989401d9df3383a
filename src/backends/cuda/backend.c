/* backend.c - the kernels of NVIDIA GPUs, and conversions there to and from 16 bits. */
#include "backends/cuda/cuda.h"
#include "kernels/cuda/pointwise.h"

#define BACKEND_MAX_ELEMENTS INT32_MAX

static bool backend_is_small(const co_tensor *tensor)
{
    return !tensor || co_shape_count(&tensor->shape) <= BACKEND_MAX_ELEMENTS;
}

bool cuda_fits(const co_call *call, const char **why)
{
    bool fits = true;

    for (int i = 0; i < call->n_in; i++)
        fits = fits && backend_is_small(call->in[i]);
    for (int i = 0; i < call->n_out; i++)
        fits = fits && backend_is_small(call->out[i]);
    if (!fits)
        *why = "a tensor of more than 2^31 elements";
    return fits;
}

uint32_t cuda_plane(const co_shape *shape)
{
    int64_t plane = 1;

    for (int d = 2; d < shape->ndim; d++)
        plane *= shape->dim[d];
    return (uint32_t)plane;
}

cuda_linear_size cuda_linear_sizes(const co_call *call)
{
    const co_shape *weight = &call->param[0].shape;
    const int64_t n = co_shape_count(&call->in[0]->shape) / weight->dim[1];

    return (cuda_linear_size){(uint32_t)n, (uint32_t)weight->dim[1], (uint32_t)weight->dim[0]};
}

static co_status backend_convert(co_queue *queue, void *to, co_dtype to_type, const void *from,
                                 co_dtype from_type, size_t n)
{
    cuda_convert args = {.out = to,
                         .x = from,
                         .n = n,
                         .from = cuda_number_of(from_type),
                         .to = cuda_number_of(to_type)};

    cuda_launch(queue, CUDA_pointwise_convert, CUDA_STEPS(n), &args);
    return CO_OK;
}

#define BACKEND_ENTRY(name) &co_cuda_##name,

static const co_kernel *const backend_kernels[] = {CUDA_BACKEND_KERNELS(BACKEND_ENTRY) NULL};

const co_backend co_backend_cuda = {
    .name = "cuda",
    .summary = "NVIDIA GPUs, by cuDNN, cuBLASLt and kernels of our own",
    .kernels = backend_kernels,
    .device = "cuda",
    .unpack = &co_cuda_unpack,
    .convert = backend_convert,
};
