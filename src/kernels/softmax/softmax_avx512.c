/* softmax_avx512.c - the loops of softmax.h for AVX-512. */
#define LANES         16
#define SOFTMAX_TABLE softmax_loops_avx512

#include "kernels/softmax/softmax_impl.h"
