/* winograd3_avx2.c - the loops of winograd3.h for AVX2 and tensors of floats. */
#define LANES           8
#define WINOGRAD3_TABLE winograd3_loops_avx2
#define WINOGRAD3_NAME  "winograd:avx2"

#include "kernels/winograd3/winograd3_floats.h"
