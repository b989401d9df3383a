/* gelu_avx2.c - the loops of gelu.h for AVX2. */
#define LANES      8
#define GELU_TABLE gelu_loops_avx2

#include "kernels/gelu/gelu_float.h"
