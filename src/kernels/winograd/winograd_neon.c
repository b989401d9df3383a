/* winograd_neon.c - the loops of winograd.h for NEON and tensors of floats. */
#define LANES          4
#define WINOGRAD_TABLE winograd_loops_neon
#define WINOGRAD_NAME  "winograd:neon"

#include "kernels/winograd/winograd_floats.h"
