/* pool_floats.h - the loops of pool.h for floats, for a file that defines LANES and POOL_TABLE. */
#include "kernels/simd.h"

typedef float pool_cell;

SIMD_INLINE vec pool_take(const pool_cell *from)
{
    return simd_load(from);
}

SIMD_INLINE void pool_put(pool_cell *to, vec value)
{
    simd_store(to, value);
}

#include "kernels/pool/pool_impl.h"
