/* reorder_avx2.c - the loops of reorder.h, 8 lanes. */
#include <stdbool.h>

#define LANES 8

#define CELL    uint32_t
#define NAME(x) reorder_floats_##x
#include "kernels/reorder/reorder_impl.h"

#define CELL    uint16_t
#define NAME(x) reorder_halves_##x
#include "kernels/reorder/reorder_impl.h"

const reorder_loops reorder_loops_avx2 = {reorder_floats_move, reorder_halves_move};
