/* pointwise.c - which loops of pointwise.h this process uses. */
#include "kernels/pointwise/pointwise.h"

const pointwise_loops *pointwise_choose(void)
{
    return KERNELS_CHOOSE(pointwise_loops, &pointwise_loops_basic);
}
