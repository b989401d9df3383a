/* direct_conv_avx2.c - the loops of direct_conv.h for AVX2. */
#define LANES              8
#define DIRECT_CONV_PIXELS 6
#define DIRECT_CONV_DEPTH  4
#define DIRECT_CONV_TABLE  direct_conv_loops_avx2
#define DIRECT_CONV_NAME   "direct:avx2"

#include "kernels/direct_conv/direct_conv_impl.h"
