/* pointwise_avx512.c - the loops of pointwise.h for AVX-512. */
#define LANES           16
#define POINTWISE_TABLE pointwise_loops_avx512

#include "kernels/pointwise/pointwise_impl.h"
