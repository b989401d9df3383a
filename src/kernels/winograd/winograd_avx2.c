/* winograd_avx2.c - the loops of winograd.h for AVX2 and tensors of floats. */
#define LANES          8
#define WINOGRAD_TABLE winograd_loops_avx2
#define WINOGRAD_NAME  "winograd:avx2"

#include "kernels/winograd/winograd_floats.h"
