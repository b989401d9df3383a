/* gelu_neon.c - the loops of gelu.h for NEON. */
#define LANES      4
#define GELU_TABLE gelu_loops_neon

#include "kernels/gelu/gelu_float.h"
