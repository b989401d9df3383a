/* direct_conv_basic.c - the loops of direct_conv.h for any processor. */
#define LANES              8
#define DIRECT_CONV_PIXELS 2
#define DIRECT_CONV_DEPTH  2
#define DIRECT_CONV_TABLE  direct_conv_loops_basic
#define DIRECT_CONV_NAME   "direct:basic"

#include "kernels/direct_conv/direct_conv_impl.h"
