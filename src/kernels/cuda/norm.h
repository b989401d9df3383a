/* norm.h - what the kernels of norm.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_NORM_H
#define CO_KERNELS_CUDA_NORM_H

#include "kernels/cuda/sums.h"

/* Of rows (n, channels). */
typedef struct cuda_norm {
    void *out;
    const void *x, *dy;
    const float *weight, *bias; /* bias NULL: 0 */
    cuda_number type;           /* of out, x and dy */
    bool rounded;               /* weight and bias to `type` */
    cuda_stat *stat;            /* of rows; the mean is 0 with `rms` */
    uint32_t n, channels;
    float eps;
    bool rms;
} cuda_norm;

#endif
