/* heads.h - what the kernels of heads.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_HEADS_H
#define CO_KERNELS_CUDA_HEADS_H

#include <stddef.h>
#include <stdint.h>

/* `width` numbers of each row; those of neighbouring rows are a step apart. heads_pad: zeros from
   there to the next row. */
typedef struct cuda_move {
    float *out;
    const float *x;
    uint32_t rows, width, out_step, step;
} cuda_move;

/* Rows of queries, keys and values, of heads of 2 half numbers each. Row r has the position
   r % length; `turned` heads are rotated and `kept` ones after them are not. */
typedef struct cuda_rotate {
    float *out; /* may be x */
    const float *x;
    uint32_t rows, length, turned, kept, half;
    float sign;       /* -1: back */
    double log_theta; /* to the base of 2 */
} cuda_rotate;

#endif
