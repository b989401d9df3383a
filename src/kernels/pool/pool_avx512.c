/* pool_avx512.c - the loops of pool.h for AVX-512. */
#define LANES      16
#define POOL_TABLE pool_loops_avx512

#include "kernels/pool/pool_impl.h"
