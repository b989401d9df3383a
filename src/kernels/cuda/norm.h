/* norm.h - what the kernels of norm.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_NORM_H
#define CO_KERNELS_CUDA_NORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Columns that a block of norm_column_sums takes; its other threads share their rows. */
#define CUDA_COLUMNS 32

/* Mean and 1 / standard deviation, of a channel or of a row. */
typedef struct cuda_stat {
    float mean, scale;
} cuda_stat;

typedef enum cuda_sum_kind {
    CUDA_MOMENTS,   /* d and d^2, d = x - shift of the channel */
    CUDA_GRADIENTS, /* dy and dy z, z = (x - mean) scale of the channel */
    CUDA_OF_ROWS,   /* the same with mean and scale of the row; plane is 1 */
    CUDA_VALUES     /* dy and 0 */
} cuda_sum_kind;

/* Two sums for each channel of (n, channels, plane), in parts: of `each` of its n plane elements.
 */
typedef struct cuda_sums {
    const float *x, *dy;
    const uint16_t *half; /* dy in 16 bits, of CUDA_VALUES; NULL: it is in fp32 */
    const cuda_stat *stat;
    const float *shift; /* (channels); NULL: the channel's first x */
    double *part;       /* (channels, parts, 2) */
    uint32_t n, channels, plane, parts, each;
    cuda_sum_kind kind;
    bool f16; /* of half; else BF16 */
} cuda_sums;

/* What becomes of the sums. */
typedef struct cuda_settle {
    const double *part; /* as above */
    uint32_t channels, parts, plane;
    double count; /* elements of a channel */
    /* Over ranks: both sums of each channel (channels, 2), then the count, of all ranks; which
       norm_totals makes of this rank's, of which none count with `phantom`. NULL: of this rank
       alone. */
    double *total;
    bool phantom;
    /* Of moments: */
    const float *x;
    cuda_stat *stat;
    float *running_mean, *running_var; /* read by norm_recall */
    double eps, momentum;
    /* Of gradients: */
    float *dw, *db;  /* NULL: not wanted */
    cuda_stat *mean; /* of dy and of dy z; NULL: not wanted */
    bool accumulate;
} cuda_settle;

/* Batch norm of (n, channels, plane); layer norm of (n, channels), with stat of rows, of which the
   mean is 0 with `rms`. */
typedef struct cuda_norm {
    float *out;
    const float *x, *dy, *weight, *bias; /* bias NULL: 0 */
    cuda_stat *stat;
    const cuda_stat *mean; /* of dy and dy z, by channel */
    uint32_t n, channels, plane;
    float eps;
    bool rms;
} cuda_norm;

#endif
