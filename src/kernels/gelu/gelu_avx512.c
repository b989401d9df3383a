/* gelu_avx512.c - the loops of gelu.h for AVX-512. */
#define LANES      16
#define GELU_TABLE gelu_loops_avx512

#include "kernels/gelu/gelu_float.h"
