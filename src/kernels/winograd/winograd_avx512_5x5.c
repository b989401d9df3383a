/* winograd_avx512_5x5.c - the loops of winograd.h for AVX-512, tensors of floats and 5x5 taps. */
#define LANES          16
#define WINOGRAD_SIDE  5
#define WINOGRAD_TABLE winograd5x5_loops_avx512
#define WINOGRAD_NAME  "winograd5x5:avx512"

#include "kernels/winograd/winograd_floats.h"
