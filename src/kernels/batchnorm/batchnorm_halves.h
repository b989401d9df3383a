/* batchnorm_halves.h - batch norm's loops on BF16, for AVX-512 with its instructions for BF16: for
   a file that defines LANES as 16, and NORM_TABLE. They flush subnormals. */
#define CELL_HALF

#include "kernels/batchnorm/batchnorm.h"
#include "kernels/batchnorm/batchnorm_mask512.h"
#include "kernels/cell.h"

#include "kernels/batchnorm/batchnorm_impl.h"
