/* batchnorm_avx512.c - batch norm's loops on 16 channels at once, for AVX-512. */
#define LANES      16
#define NORM_TABLE norm_loops_avx512

#include "kernels/batchnorm/batchnorm.h"
#include "kernels/simd.h"

#include "kernels/batchnorm/batchnorm_float.h"
#include "kernels/batchnorm/batchnorm_mask512.h"

#include "kernels/batchnorm/batchnorm_impl.h"
