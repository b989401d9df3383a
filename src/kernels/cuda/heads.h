/* heads.h - what the kernels of heads.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_HEADS_H
#define CO_KERNELS_CUDA_HEADS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/number.h"

/* `width` numbers of each row; those of neighbouring rows are a step apart, and `out` is the tensor
   from its number `at` on. heads_pad: zeros from there to the next row. */
typedef struct cuda_move {
    void *out;
    const void *x;
    size_t at, x_at; /* likewise of x */
    uint32_t rows, width, out_step, step;
    cuda_number type, from; /* of out, of x */
} cuda_move;

/* Rows of queries, keys and values, of heads of 2 half numbers each. Row r has the position
   r % length; `turned` heads are rotated and `kept` ones after them are not. */
typedef struct cuda_rotate {
    void *out; /* may be x */
    const void *x;
    uint32_t rows, length, turned, kept, half;
    cuda_number type;
    float sign;       /* -1: back */
    double log_theta; /* to the base of 2 */
} cuda_rotate;

#endif
