/*
 * reorder.c - where the elements of each layout are, and which loops move them.
 */
#include "kernels/reorder/reorder.h"

reorder_places reorder_plain(int64_t c, int64_t plane)
{
    return (reorder_places){c, plane, 1, c * plane, plane, 1};
}

reorder_places reorder_blocks(int64_t c, int64_t plane, int64_t block)
{
    const int64_t blocks = (c + block - 1) / block, group = block * plane;

    return (reorder_places){c, plane, block, blocks * group, group, block};
}

reorder_places reorder_last(int64_t c, int64_t plane)
{
    return (reorder_places){c, plane, 1, c * plane, 1, c};
}

const reorder_loops *reorder_choose(void)
{
    return KERNELS_CHOOSE(reorder_loops, &reorder_loops_basic);
}
