/* pool.c - which loops of pool.h this process uses. */
#include "kernels/pool/pool.h"

const pool_loops *pool_choose(void)
{
    return KERNELS_CHOOSE(pool_loops, &pool_loops_basic);
}
