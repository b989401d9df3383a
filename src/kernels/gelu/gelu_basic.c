/* gelu_basic.c - the loops of gelu.h for any processor. */
#define LANES      4
#define GELU_TABLE gelu_loops_basic

#include "kernels/gelu/gelu_float.h"
