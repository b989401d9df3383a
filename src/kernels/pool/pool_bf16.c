/* pool_bf16.c - the loops of pool.h for BF16. */
#define LANES      16
#define POOL_TABLE pool_loops_bf16

#include "kernels/half16.h"

typedef uint16_t pool_cell;

SIMD_INLINE vec pool_take(const pool_cell *from)
{
    return half16_load(from);
}

SIMD_INLINE void pool_put(pool_cell *to, vec value)
{
    half16_store(to, value);
}

#include "kernels/pool/pool_impl.h"
