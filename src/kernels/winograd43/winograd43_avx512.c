/* winograd43_avx512.c - the loops of winograd43.h for AVX-512 and tensors of floats. */
#define LANES            16
#define WINOGRAD43_TABLE winograd43_loops_avx512
#define WINOGRAD43_NAME  "winograd:avx512"

#include "kernels/winograd43/winograd43_floats.h"
