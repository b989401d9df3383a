/* pool_basic.c - the loops of pool.h for any processor. */
#define LANES      8
#define POOL_TABLE pool_loops_basic

#include "kernels/pool/pool_impl.h"
