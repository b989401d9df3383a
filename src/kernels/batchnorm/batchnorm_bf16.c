/* batchnorm_bf16.c - batch norm's loops on 16 channels of BF16 at once, for AVX-512 with its
   instructions for BF16. They flush subnormals. */
#define LANES      16
#define NORM_TABLE norm_loops_bf16

#include "kernels/batchnorm/batchnorm.h"
#include "kernels/half16.h"

typedef uint16_t cell;

#define norm_load  half16_load
#define norm_store half16_store

#include "kernels/batchnorm/batchnorm_mask512.h"

#include "kernels/batchnorm/batchnorm_impl.h"
