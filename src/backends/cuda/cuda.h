/*
 * cuda.h - kernels of NVIDIA GPUs: each puts launches of src/kernels/cuda on the call's queue.
 *
 * Images have their channels last from a convolution by cuDNN on, through the kernels that read
 * CUDA_READS, in the type that they have; other tensors are in the plain layout. What a kernel
 * computes depends on shapes alone, not on the GPU: sums have one order.
 */
#ifndef CO_BACKENDS_CUDA_CUDA_H
#define CO_BACKENDS_CUDA_CUDA_H

#include "backends/backends.h"
#include "device/cuda/kernels.h"
#include "kernels/cuda/number.h"
#include "ops/ops.h"

#define CUDA_READS CO_READS(CO_FORMAT_CHANNELS_LAST)
/* Of kernels that compute in any type. */
#define CUDA_HALF (1u << CO_BF16 | 1u << CO_F16)

cuda_number cuda_number_of(co_dtype dtype);
/* Threads for n elements, CUDA_TOGETHER for each and then one. */
#define CUDA_STEPS(n) ((n) / CUDA_TOGETHER + (n) % CUDA_TOGETHER)

/* Tensors small enough for the kernels' indices of 32 bits. */
bool cuda_fits(const co_call *call, const char **why);

static inline size_t cuda_count_of(const co_tensor *tensor)
{
    return (size_t)co_shape_count(&tensor->shape);
}

/* Bytes that its elements take as this type, up to where the next tensor may begin. */
size_t cuda_room(const co_tensor *tensor, co_dtype dtype);

/* Elements after the first two dimensions; 1 if there are none. */
uint32_t cuda_plane(const co_shape *shape);

/* The bytes of `from`, on the call's queue, if `to` is another tensor; NULL: nothing. */
co_status cuda_copy_tensor(const co_call *call, const co_tensor *to, const co_tensor *from);

/* Rows of a linear layer, and its features in and out. */
typedef struct cuda_linear_size {
    uint32_t n, in, out;
} cuda_linear_size;

cuda_linear_size cuda_linear_sizes(const co_call *call);

/* --- sums.c: over channels and columns, of tensors (n, channels, plane) --- */

typedef struct cuda_extent {
    uint32_t n, channels, plane;
} cuda_extent;

struct cuda_settle;
struct cuda_sums;

/* Doubles that the sums of such a tensor take in scratch memory. */
size_t cuda_sums_room(uint32_t n, uint32_t channels, uint32_t plane);
/* Adds up into scratch. All is set in `sums` but part and how it is cut, which are set, as they and
   the sizes are in `settle`. */
void cuda_sum_parts(const co_call *call, struct cuda_sums *sums, struct cuda_settle *settle,
                    double *part);
/* The same; then `settle`, the rest of which is set, is launched as `kernel`. */
void cuda_sum_channels(const co_call *call, struct cuda_sums *sums, cuda_kernel kernel,
                       struct cuda_settle *settle, double *part);

/* The gradient of the call's second parameter, if it has one: sums by channel of `dy`, of the type
   of grad_out[0]. `part`: scratch memory for cuda_sums_room doubles. */
void cuda_sum_bias(const co_call *call, const co_run *run, cuda_extent size, const void *dy,
                   void *part);

/* --- layout.c --- */

/* Whether channels come last in memory, by the layout or because either order is the same. */
bool cuda_is_last(const co_tensor *tensor);
/* Gives it the layout in which they do, where that makes a difference. */
void cuda_set_last(co_tensor *tensor);
/* Its sizes by its layout: where channels come last, each place is a sample. */
cuda_extent cuda_extent_of(const co_tensor *tensor);
/* A copy of `from` in that layout, as `dtype`. */
void cuda_bring_last(co_queue *queue, void *to, co_dtype dtype, const co_tensor *from);
/* The plain tensor `to`, in fp32 if it is added to, of what is in that layout, as `dtype`. */
void cuda_take_plain(co_queue *queue, const co_tensor *to, const void *from, co_dtype dtype,
                     bool accumulate);
/* out[0], whose channels come last, from sums of such a type: the call's second parameter is added
   to each channel. */
void cuda_add_bias(const co_call *call, const void *sums, co_dtype type);

/* A tensor as a kernel reads it. */
typedef struct cuda_operand {
    const co_tensor *tensor; /* NULL: there is none */
    size_t at;               /* in scratch memory: of a copy */
    bool copied;
} cuda_operand;

/* In the layout of `like`, of the same shape: where it has another, it is copied to scratch memory
   after the first *used bytes, which are raised, as scratch_bytes is. */
cuda_operand cuda_plan_operand(co_call *call, size_t *used, const co_tensor *tensor,
                               const co_tensor *like);
/* Its address, after a copy on the call's queue. */
const void *cuda_bring_operand(const co_call *call, const cuda_operand *operand);

extern const co_kernel co_cuda_unpack;

/* In the order in which they are tried. */
#define CUDA_BACKEND_KERNELS(X)                                                                    \
    X(conv2d_cudnn)                                                                                \
    X(conv2d_implicit_gemm)                                                                        \
    X(linear_cublaslt)                                                                             \
    X(linear_tiles)                                                                                \
    X(maxpool)                                                                                     \
    X(avgpool)                                                                                     \
    X(adaptive_avgpool)                                                                            \
    X(batchnorm)                                                                                   \
    X(layernorm)                                                                                   \
    X(rmsnorm)                                                                                     \
    X(attention_mma)                                                                               \
    X(attention)                                                                                   \
    X(embedding)                                                                                   \
    X(positions)                                                                                   \
    X(rotary)                                                                                      \
    X(patches)                                                                                     \
    X(class_token)                                                                                 \
    X(first)                                                                                       \
    X(relu)                                                                                        \
    X(gelu)                                                                                        \
    X(silu)                                                                                        \
    X(tanh)                                                                                        \
    X(dropout)                                                                                     \
    X(dropout2d)                                                                                   \
    X(add)                                                                                         \
    X(mul)                                                                                         \
    X(concat)                                                                                      \
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
