/* rotary_neon.c - the loops of rotary.h for NEON. */
#define LANES        4
#define ROTARY_TABLE rotary_loops_neon

#include "kernels/rotary/rotary_impl.h"
