/* direct_conv_avx512.c - the loops of direct_conv.h for AVX-512. */
#define LANES              16
#define DIRECT_CONV_PIXELS 14
#define DIRECT_CONV_DEPTH  8
#define DIRECT_CONV_TABLE  direct_conv_loops_avx512
#define DIRECT_CONV_NAME   "direct:avx512"

#include "kernels/direct_conv/direct_conv_impl.h"
