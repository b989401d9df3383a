/* small_conv_avx2.c - the loops of small_conv.h for AVX2. */
#define LANES            8
#define SMALL_CONV_ROWS  6
#define SMALL_CONV_DEPTH 4
#define SMALL_CONV_TABLE small_conv_loops_avx2
#define SMALL_CONV_NAME  "taps:avx2"

#include "kernels/small_conv/small_conv_impl.h"
