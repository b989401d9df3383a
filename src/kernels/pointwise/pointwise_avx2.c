/* pointwise_avx2.c - the loops of pointwise.h for AVX2. */
#define LANES           8
#define POINTWISE_TABLE pointwise_loops_avx2

#include "kernels/pointwise/pointwise_impl.h"
