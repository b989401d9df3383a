/*
 * matmul.h - products of matrices by NVIDIA's library cuBLASLt, which is opened with a GPU, if it
 * is there. Matrices are row-major.
 */
#ifndef CO_DEVICE_CUDA_MATMUL_H
#define CO_DEVICE_CUDA_MATMUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/ext/device.h>
#include <cohort/types.h>

/* What is done to a product with its bias, by the form of GELU with tanh; in 16 bits alone. */
typedef enum cuda_matmul_gelu {
    CUDA_MATMUL_NO_GELU,
    CUDA_MATMUL_GELU,         /* d = gelu(p) */
    CUDA_MATMUL_GELU_KEEP,    /* the same; p is kept */
    CUDA_MATMUL_GELU_GRADIENT /* d = p gelu'(kept) */
} cuda_matmul_gelu;

/* d (m, n) = a (m, k) b (k, n) + bias (n), added to each row; sums are in fp32. */
typedef struct cuda_matmul_shape {
    uint32_t m, n, k;
    bool a_transposed, b_transposed; /* it is (k, m), (n, k) in memory */
    bool bias;
    cuda_matmul_gelu gelu;
    bool tf32;        /* of fp32 matrices: in TF32, whatever the device does */
    co_dtype in, out; /* of a and b; of d and bias: the same, or fp32 */
} cuda_matmul_shape;

/* In the GPU's memory, each at a multiple of CO_DEVICE_ALIGN. */
typedef struct cuda_matmul_operands {
    void *d;
    const void *a, *b, *bias;
    void *kept;      /* (m, n) as d, of GELU */
    void *workspace; /* cuda_matmul_workspace bytes */
    bool accumulate; /* the product is added to d */
} cuda_matmul_operands;

/* An algorithm for one shape, the same in each run on one kind of GPU with one version of the
   library; results of an algorithm do not change from run to run. */
typedef struct cuda_matmul cuda_matmul;

/* NULL: cuda_matmul_create would succeed, but for memory. Else the reason, a constant. */
const char *cuda_matmul_refuses(co_device *device, const cuda_matmul_shape *shape);
/* CO_E_UNSUPPORTED: there is no library, or no algorithm; CO_E_NOMEM. */
co_status cuda_matmul_create(cuda_matmul **out, co_device *base, const cuda_matmul_shape *shape);
/* Takes NULL. */
void cuda_matmul_destroy(cuda_matmul *matmul);
size_t cuda_matmul_workspace(const cuda_matmul *matmul);
/* On a queue of the device. */
co_status cuda_matmul_run(const cuda_matmul *matmul, co_queue *queue,
                          const cuda_matmul_operands *operands);

struct cuda_device;
/* With the device, whose context is the thread's; a library that is missing is no error. */
co_status cuda_matmul_open(struct cuda_device *device);
void cuda_matmul_close(struct cuda_device *device);

#endif
