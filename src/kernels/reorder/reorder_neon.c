/* reorder_neon.c - the loops of reorder.h, 4 lanes. */
#include <stdbool.h>

#define LANES 4

#define CELL    uint32_t
#define NAME(x) reorder_floats_##x
#include "kernels/reorder/reorder_impl.h"

#define CELL    uint16_t
#define NAME(x) reorder_halves_##x
#include "kernels/reorder/reorder_impl.h"

const reorder_loops reorder_loops_neon = {reorder_floats_move, reorder_halves_move};
