/* direct_conv.c - which loops of direct_conv.h this process uses. */
#include "kernels/direct_conv/direct_conv.h"

const direct_conv_loops *direct_conv_choose(void)
{
    return KERNELS_CHOOSE(direct_conv_loops, &direct_conv_loops_basic);
}
