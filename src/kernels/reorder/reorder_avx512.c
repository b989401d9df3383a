/* reorder_avx512.c - the loops of reorder.h, 16 lanes. */
#include <stdbool.h>

#define LANES 16

#define CELL    uint32_t
#define NAME(x) reorder_floats_##x
#include "kernels/reorder/reorder_impl.h"

#define CELL    uint16_t
#define NAME(x) reorder_halves_##x
#include "kernels/reorder/reorder_impl.h"

const reorder_loops reorder_loops_avx512 = {reorder_floats_move, reorder_halves_move};
