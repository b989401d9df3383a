/* rows.h - what the kernels of rows.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_ROWS_H
#define CO_KERNELS_CUDA_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <cohort/ext/step.h>

#include "kernels/cuda/number.h"

typedef enum cuda_term { CUDA_SQUARE, CUDA_ABSOLUTE, CUDA_BINARY } cuda_term;

/* (rows, width); not all of it is used by each kernel. `lanes` threads share a row: a power of 2,
   at most CUDA_BLOCK. */
typedef struct cuda_rows {
    void *out;            /* (rows, width), or losses (rows), in fp32 */
    const void *x, *y;    /* (rows, width); backward of log_softmax: dy, y; targets, in fp32 */
    cuda_number type;     /* of rows but for targets */
    const int32_t *label; /* (rows); -1: the row does not count */
    const co_step_values *values;
    uint32_t rows, width, lanes;
    uint32_t positions; /* rows of a sample, of a loss of labels */
    float smoothing;
    cuda_term term;
    bool phantom; /* the samples do not count */
} cuda_rows;

#endif
