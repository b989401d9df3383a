/* phase_conv_neon.c - the loops of phase_conv.h for NEON. */
#define LANES            4
#define PHASE_CONV_ROWS  14
#define PHASE_CONV_STEP  8
#define PHASE_CONV_TABLE phase_conv_loops_neon
#define PHASE_CONV_NAME  "phases:neon"

#include "kernels/phase_conv/phase_conv_impl.h"
