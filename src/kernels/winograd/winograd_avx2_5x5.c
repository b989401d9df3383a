/* winograd_avx2_5x5.c - the loops of winograd.h for AVX2, tensors of floats and 5x5 taps. */
#define LANES          8
#define WINOGRAD_SIDE  5
#define WINOGRAD_TABLE winograd5x5_loops_avx2
#define WINOGRAD_NAME  "winograd5x5:avx2"

#include "kernels/winograd/winograd_floats.h"
