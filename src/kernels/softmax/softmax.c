/* softmax.c - which loops of softmax.h this process uses. */
#include "kernels/softmax/softmax.h"

const softmax_loops *softmax_choose(void)
{
    return KERNELS_CHOOSE(softmax_loops, &softmax_loops_basic);
}
