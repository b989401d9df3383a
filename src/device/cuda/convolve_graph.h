/* convolve_graph.h - what cuDNN is asked to do: of convolve.c and convolve_graph.c. */
#ifndef CO_DEVICE_CUDA_CONVOLVE_GRAPH_H
#define CO_DEVICE_CUDA_CONVOLVE_GRAPH_H

#include <cudnn_graph.h>

#include "device/cuda/convolve.h"
#include "device/cuda/internal.h"

#define CONV_OPERANDS 3  /* x, w, y; their ids are 1, 2, 3 */
#define CONV_BIAS     4  /* id of what is added; operands with it */
#define CONV_SUMS     5  /* id of what it is added to, which is nowhere in memory */
#define CONV_OWN      12 /* descriptors of a convolution, at most */

#define CONV_FUNCTIONS(X)                                                                          \
    X(cudnnGetVersion)                                                                             \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

typedef struct conv_calls {
    CONV_FUNCTIONS(CUDA_MEMBER)
} conv_calls;

/* The library on one GPU. */
struct cuda_dnn {
    conv_calls call;
    cudnnHandle_t handle;
    cuda_conv *all; /* owned */
};

struct cuda_conv {
    cuda_conv *next;
    const cuda_device *device; /* borrowed */
    cuda_conv_shape shape;
    cudnnBackendDescriptor_t own[CONV_OWN], plan;
    int n_own;
    int64_t workspace;
};

typedef cudnnBackendDescriptor_t conv_desc;

typedef struct conv_attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t n;
    const void *value;
} conv_attribute;

/* A descriptor with the attributes (n), finalized. */
cudnnStatus_t conv_describe(conv_desc *out, const conv_calls *call,
                            cudnnBackendDescriptorType_t type, const conv_attribute *attribute,
                            size_t n);
#define CONV_DESCRIBE(out, call, type, attributes)                                                 \
    conv_describe(out, call, type, attributes, sizeof(attributes) / sizeof((attributes)[0]))

/* A graph of the convolution, and of the sum after it. What it consists of belongs to `conv`. */
cudnnStatus_t conv_describe_graph(conv_desc *out, cuda_conv *conv);

#endif
