/* batchnorm_bf16_wide.c - batch norm's loops on BF16 in blocks of 32 channels, as the kernels for
   AMX have them: a pixel is a line of the caches. */
#define LANES      16
#define NORM_WIDE  2
#define NORM_TABLE norm_loops_bf16_wide

#include "kernels/batchnorm/batchnorm_halves.h"
