/* batchnorm_bf16.c - batch norm's loops on 16 channels of BF16 at once. */
#define LANES      16
#define NORM_TABLE norm_loops_bf16

#include "kernels/batchnorm/batchnorm_halves.h"
