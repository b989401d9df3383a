/* winograd3_avx512.c - the loops of winograd3.h for AVX-512 and tensors of floats. */
#define LANES           16
#define WINOGRAD3_TABLE winograd3_loops_avx512
#define WINOGRAD3_NAME  "winograd:avx512"

#include "kernels/winograd3/winograd3_floats.h"
