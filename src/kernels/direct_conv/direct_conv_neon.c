/* direct_conv_neon.c - the loops of direct_conv.h for NEON. */
#define LANES              4
#define DIRECT_CONV_PIXELS 14
#define DIRECT_CONV_DEPTH  4
#define DIRECT_CONV_TABLE  direct_conv_loops_neon
#define DIRECT_CONV_NAME   "direct:neon"

#include "kernels/direct_conv/direct_conv_impl.h"
