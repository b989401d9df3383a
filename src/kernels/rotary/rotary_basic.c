/* rotary_basic.c - the loops of rotary.h for any processor. */
#define LANES        4
#define ROTARY_TABLE rotary_loops_basic

#include "kernels/rotary/rotary_impl.h"
