/* dropout_avx512.c - the loops of dropout.h for AVX-512. */
#define LANES         16
#define DROPOUT_TABLE dropout_loops_avx512

#include "kernels/dropout/dropout_impl.h"
