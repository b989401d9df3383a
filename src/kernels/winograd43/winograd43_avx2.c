/* winograd43_avx2.c - the loops of winograd43.h for AVX2 and tensors of floats. */
#define LANES            8
#define WINOGRAD43_TABLE winograd43_loops_avx2
#define WINOGRAD43_NAME  "winograd:avx2"

#include "kernels/winograd43/winograd43_floats.h"
