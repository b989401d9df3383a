/* update.h - what the kernels of update.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_UPDATE_H
#define CO_KERNELS_CUDA_UPDATE_H

#include "kernels/update/update.h"

/* A range of the store; which state and which settings are used depends on the kernel. */
typedef struct cuda_update {
    float *param;          /* (n) */
    const float *grad;     /* (n) */
    float *first, *second; /* (n), states */
    const co_step_values *values;
    size_t n;
    uint64_t missed;
    double decay;
    co_sgd sgd;
    co_adadelta adadelta;
    double beta1, beta2, eps;
    bool beside;
    co_lars lars;
    double *squares; /* (2): sums of squares of weights; of gradients, or steps; of one tensor */
    bool plain;      /* without them */
} cuda_update;

#endif
