/* softmax_avx2.c - the loops of softmax.h for AVX2. */
#define LANES         8
#define SOFTMAX_TABLE softmax_loops_avx2

#include "kernels/softmax/softmax_impl.h"
