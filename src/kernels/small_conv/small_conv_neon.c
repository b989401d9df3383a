/* small_conv_neon.c - the loops of small_conv.h for NEON. */
#define LANES            4
#define SMALL_CONV_ROWS  12
#define SMALL_CONV_DEPTH 4
#define SMALL_CONV_TABLE small_conv_loops_neon
#define SMALL_CONV_NAME  "taps:neon"

#include "kernels/small_conv/small_conv_impl.h"
