/* sums.h - what the kernels of sums.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_SUMS_H
#define CO_KERNELS_CUDA_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/number.h"

/* Columns that a block of sums_of_columns takes, where a thread has one; its other threads share
   their rows. */
#define CUDA_COLUMNS 32
/* Where a thread has CUDA_TOGETHER. */
#define CUDA_WIDE_COLUMNS 64

/* Mean and 1 / standard deviation, of a channel or of a row. */
typedef struct __attribute__((aligned(8))) cuda_stat {
    float mean, scale;
} cuda_stat;

typedef enum cuda_sum_kind {
    CUDA_MOMENTS,   /* d and d^2, d = x - shift of the channel */
    CUDA_GRADIENTS, /* dy and dy z, z = (x - mean) scale of the channel */
    CUDA_OF_ROWS,   /* the same with mean and scale of the row; plane is 1 */
    CUDA_VALUES     /* dy and 0 */
} cuda_sum_kind;

/* The gradient of an output, in its two parts, as it arrives at a batch norm through what follows
   in the same pass; of the type of the sums or the gradients that are made of it. */
typedef struct cuda_incoming {
    const void *dy;
    const void *more;    /* NULL, or added to dy */
    const uint8_t *mask; /* NULL, or a bit for each element: 0 where a ReLU after a sum gave 0 */
    void *sum;           /* NULL, or where it is written: the gradient of an addend */
    bool relu;           /* and then it comes through a ReLU of the normalised value */
} cuda_incoming;

/* Two sums for each channel of (n, channels, plane), in parts: of `each` of its n plane elements.
 */
typedef struct cuda_sums {
    const void *x; /* of CUDA_VALUES: NULL */
    cuda_incoming in;
    const cuda_stat *stat;
    const float *weight, *bias; /* (channels), with in.relu */
    const float *shift;         /* (channels); NULL: the channel's first x */
    double *part;               /* (channels, parts, 2) */
    uint32_t n, channels, plane, parts, each;
    uint32_t together; /* columns of a thread: 1 or CUDA_TOGETHER */
    cuda_sum_kind kind;
    cuda_number type; /* of x and dy */
    bool rounded;     /* weight and bias to `type` */
} cuda_sums;

/* What becomes of the sums. */
typedef struct cuda_settle {
    const double *part; /* as above */
    uint32_t channels, parts, plane;
    double count; /* elements of a channel */
    /* Over ranks: both sums of each channel (channels, 2), then the count, of all ranks; which
       sums_totals makes of this rank's, of which none count with `phantom`. NULL: of this rank
       alone. */
    double *total;
    bool phantom;
    /* Of moments: */
    const void *x;
    cuda_number type; /* of x */
    cuda_stat *stat;
    float *running_mean, *running_var; /* read by sums_recall */
    double eps, momentum;
    /* Of gradients: */
    float *dw, *db;  /* NULL: not wanted */
    cuda_stat *mean; /* of dy and of dy z; NULL: not wanted */
    bool accumulate;
} cuda_settle;

#endif
