/* winograd_avx512.c - the loops of winograd.h for AVX-512 and tensors of floats. */
#define LANES          16
#define WINOGRAD_TABLE winograd_loops_avx512
#define WINOGRAD_NAME  "winograd:avx512"

#include "kernels/winograd/winograd_floats.h"
