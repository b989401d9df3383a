/*
 * cuda.h - kernels of NVIDIA GPUs: each puts launches of src/kernels/cuda on the call's queue.
 *
 * All tensors are in the plain layout. What a kernel computes depends on shapes alone, not on the
 * GPU: sums have one order.
 */
#ifndef CO_BACKENDS_CUDA_CUDA_H
#define CO_BACKENDS_CUDA_CUDA_H

#include "backends/backends.h"
#include "device/cuda/kernels.h"
#include "ops/ops.h"

/* Tensors small enough for the kernels' indices of 32 bits. */
bool cuda_fits(const co_call *call, const char **why);

static inline size_t cuda_count_of(const co_tensor *tensor)
{
    return (size_t)co_shape_count(&tensor->shape);
}

/* Elements after the first two dimensions; 1 if there are none. */
uint32_t cuda_plane(const co_shape *shape);

/* Rows of a linear layer, and its features in and out. */
typedef struct cuda_linear_size {
    uint32_t n, in, out;
} cuda_linear_size;

cuda_linear_size cuda_linear_sizes(const co_call *call);

/* --- sums.c: over channels and columns, of tensors (n, channels, plane) --- */

struct cuda_settle;
struct cuda_sums;

/* Doubles that the sums of such a tensor take in scratch memory. */
size_t cuda_sums_room(uint32_t n, uint32_t channels, uint32_t plane);
/* Adds up into scratch, all set in `sums` but part, parts and each, which are set; then `settle`,
   all set in it but part, parts and sizes, is launched as `kernel`. */
void cuda_sum_channels(const co_call *call, struct cuda_sums *sums, cuda_kernel kernel,
                       struct cuda_settle *settle, double *part);

/* The gradient of the call's second parameter, if it has one: sums of grad_out[0], of any type of
   floats, by channel. Takes cuda_sums_room doubles of scratch. */
void cuda_sum_bias(const co_call *call, const co_run *run, uint32_t n, uint32_t channels,
                   uint32_t plane);

/* In the order in which they are tried. */
#define CUDA_BACKEND_KERNELS(X)                                                                    \
    X(conv2d)                                                                                      \
    X(linear_cublaslt)                                                                             \
    X(linear_tiles)                                                                                \
    X(maxpool)                                                                                     \
    X(avgpool)                                                                                     \
    X(adaptive_avgpool)                                                                            \
    X(batchnorm)                                                                                   \
    X(layernorm)                                                                                   \
    X(relu)                                                                                        \
    X(gelu)                                                                                        \
    X(tanh)                                                                                        \
    X(dropout)                                                                                     \
    X(dropout2d)                                                                                   \
    X(add)                                                                                         \
    X(flatten)                                                                                     \
    X(scale)                                                                                       \
    X(log_softmax)                                                                                 \
    X(nll_loss)                                                                                    \
    X(cross_entropy)                                                                               \
    X(mse_loss)                                                                                    \
    X(l1_loss)                                                                                     \
    X(bce_with_logits_loss)

#define CUDA_BACKEND_DECLARE(name) extern const co_kernel co_cuda_##name;
CUDA_BACKEND_KERNELS(CUDA_BACKEND_DECLARE)

#endif
