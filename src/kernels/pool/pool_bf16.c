/* pool_bf16.c - the loops of pool.h for BF16. */
#define LANES      16
#define POOL_TABLE pool_loops_bf16
#define CELL_HALF

#include "kernels/pool/pool_impl.h"
