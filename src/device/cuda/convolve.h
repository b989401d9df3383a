/*
 * convolve.h - convolutions by NVIDIA's library cuDNN, which is opened with a GPU, if it is there.
 * Channels come last in memory: of images (N, H, W, C) and of filters (O, R, S, C / groups).
 */
#ifndef CO_DEVICE_CUDA_CONVOLVE_H
#define CO_DEVICE_CUDA_CONVOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/ext/device.h>
#include <cohort/types.h>

typedef enum cuda_conv_kind {
    CUDA_CONV_FORWARD, /* y from x and w */
    CUDA_CONV_INPUT,   /* dx from dy and w */
    CUDA_CONV_WEIGHT,  /* dw from x and dy */
    CUDA_CONV_COUNT
} cuda_conv_kind;

/* Sizes of images and filters; those of gradients are the same. */
typedef struct cuda_conv_shape {
    int64_t x[4], w[4], y[4]; /* (N, C, H, W), (O, C / groups, R, S), (N, O, OH, OW) */
    int64_t stride[2], padding[2], dilation[2];
    cuda_conv_kind kind;
    co_dtype in, out; /* of the operands; of the result: the same, or fp32 */
    bool bias;        /* FORWARD: a number for each channel is added, and the sum rounded once */
    co_dtype bias_type;
    bool rated; /* only by an engine that the library proposes for its time, and by no substitute */
} cuda_conv_shape;

/* In the GPU's memory, each at a multiple of CO_DEVICE_ALIGN; the kind says which is written. */
typedef struct cuda_conv_operands {
    void *x, *w, *y;
    void *bias;      /* (O); NULL: none */
    void *workspace; /* cuda_conv_workspace bytes */
} cuda_conv_operands;

/* A deterministic way to compute one shape, found once for each GPU; sums are in fp32. */
typedef struct cuda_conv cuda_conv;

/* Finds it, or the one that was found before. *out belongs to the device; NULL is allowed. Of one
   thread at a time. CO_E_UNSUPPORTED: there is no library, or no way; *why, a constant, says it. */
co_status cuda_conv_find(const cuda_conv **out, const char **why, co_device *base,
                         const cuda_conv_shape *shape);
size_t cuda_conv_workspace(const cuda_conv *conv);
/* On a queue of the device. */
co_status cuda_conv_run(const cuda_conv *conv, co_queue *queue, const cuda_conv_operands *operands);

struct cuda_device;
/* With the device, whose context is the thread's; a library that is missing is no error. */
co_status cuda_conv_open(struct cuda_device *device);
void cuda_conv_close(struct cuda_device *device);

#endif
