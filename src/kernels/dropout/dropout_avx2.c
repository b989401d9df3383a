/* dropout_avx2.c - the loops of dropout.h for AVX2. */
#define LANES         8
#define DROPOUT_TABLE dropout_loops_avx2

#include "kernels/dropout/dropout_impl.h"
