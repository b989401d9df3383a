/* batchnorm_avx512.c - batch norm's loops on 16 channels at once, for AVX-512. */
#define LANES      16
#define NORM_TABLE norm_loops_avx512

#include "kernels/batchnorm/batchnorm.h"
#include "kernels/batchnorm/batchnorm_mask512.h"
#include "kernels/cell.h"

#include "kernels/batchnorm/batchnorm_impl.h"
