/* sample_lanes.c - chooses the loops for this CPU's instruction set. */
#include "kernels/sample_lanes/sample_lanes.h"

const lanes_loops *const *lanes_find_all(void)
{
    static const lanes_loops *const all[] = {KERNELS_LIST(lanes_loops, &lanes_loops_basic, NULL)};

    return all + kernels_too_new();
}

const lanes_loops *lanes_choose(void)
{
    return *lanes_find_all();
}
