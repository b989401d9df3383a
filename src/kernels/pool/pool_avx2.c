/* pool_avx2.c - the loops of pool.h for AVX2. */
#define LANES      8
#define POOL_TABLE pool_loops_avx2

#include "kernels/pool/pool_impl.h"
