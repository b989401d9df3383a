/* count.h - what the kernels of count.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_COUNT_H
#define CO_KERNELS_CUDA_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/ext/sum.h>

/* All that is counted is 0 before. */
typedef struct cuda_count {
    const float *output, *target; /* (rows, width) */
    const float *loss;            /* (rows / positions) */
    const int32_t *label;         /* (rows), -1: not counted; NULL: there are none */
    uint64_t *count, *correct, *correct5;
    double *loss_sum;
    uint32_t rows, width, lanes; /* lanes as in rows.h */
    uint32_t positions;          /* rows of a sample */
} cuda_count;

typedef enum cuda_metric { CUDA_AGREES, CUDA_MAE, CUDA_RMSE } cuda_metric;

/* sums[0]: the number of values; sums[1]: what is right, or the errors. */
typedef struct cuda_metric_sums {
    co_sum *sums;
    const float *output, *target; /* (n) */
    size_t n;
    cuda_metric metric;
} cuda_metric_sums;

#endif
