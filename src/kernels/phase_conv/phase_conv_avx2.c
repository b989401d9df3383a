/* phase_conv_avx2.c - the loops of phase_conv.h for AVX2. */
#define LANES            8
#define PHASE_CONV_ROWS  6
#define PHASE_CONV_STEP  4
#define PHASE_CONV_TABLE phase_conv_loops_avx2
#define PHASE_CONV_NAME  "phases:avx2"

#include "kernels/phase_conv/phase_conv_impl.h"
