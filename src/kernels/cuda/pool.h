/* pool.h - what the kernels of pool.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_POOL_H
#define CO_KERNELS_CUDA_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cuda/number.h"

/* Images (h, w, channels) to (oh, ow, channels), of `type`; in the plain layout each plane is an
   image of one channel. Forward reads x and writes y, backward reads dy and writes dx. */
typedef struct cuda_pool {
    const void *in;
    void *out;
    int32_t *place; /* (images, oh, ow, channels) of each maximum in its plane; NULL: not kept */
    int32_t images, channels, h, w, oh, ow;
    int32_t kernel[2], stride[2], padding[2];
    int32_t together; /* channels of a thread: 1 or CUDA_TOGETHER */
    cuda_number type;
    bool count_padding;
} cuda_pool;

#endif
