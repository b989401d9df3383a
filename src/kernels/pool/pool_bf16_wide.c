/* pool_bf16_wide.c - the loops of pool.h for BF16 in blocks of 32 channels, as the kernels for AMX
   have them. */
#define LANES      16
#define POOL_WIDE  2
#define POOL_TABLE pool_loops_bf16_wide
#define CELL_HALF

#include "kernels/pool/pool_impl.h"
