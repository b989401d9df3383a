/* winograd_neon_5x5.c - the loops of winograd.h for NEON, tensors of floats and 5x5 taps. */
#define LANES          4
#define WINOGRAD_SIDE  5
#define WINOGRAD_TABLE winograd5x5_loops_neon
#define WINOGRAD_NAME  "winograd5x5:neon"

#include "kernels/winograd/winograd_floats.h"
