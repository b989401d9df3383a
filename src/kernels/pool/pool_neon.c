/* pool_neon.c - the loops of pool.h for NEON. */
#define LANES      4
#define POOL_TABLE pool_loops_neon

#include "kernels/pool/pool_impl.h"
