/* pool.h - what the kernels of pool.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_POOL_H
#define CO_KERNELS_CUDA_POOL_H

#include <stdbool.h>
#include <stdint.h>

/* Planes (h, w) and (oh, ow). Forward reads x and writes y, backward reads dy and writes dx. */
typedef struct cuda_pool {
    const float *in;
    float *out;
    int32_t *place; /* (planes, oh, ow) of each maximum in its plane; NULL: not kept */
    int32_t planes, h, w, oh, ow;
    int32_t kernel[2], stride[2], padding[2];
    bool count_padding;
} cuda_pool;

#endif
