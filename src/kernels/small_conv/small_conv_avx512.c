/* small_conv_avx512.c - the loops of small_conv.h for AVX-512. */
#define LANES            16
#define SMALL_CONV_ROWS  8
#define SMALL_CONV_DEPTH 8
#define SMALL_CONV_TABLE small_conv_loops_avx512
#define SMALL_CONV_NAME  "taps:avx512"

#include "kernels/small_conv/small_conv_impl.h"
