/* phase_conv_avx512.c - the loops of phase_conv.h for AVX-512. */
#define LANES            16
#define PHASE_CONV_ROWS  14
#define PHASE_CONV_STEP  8
#define PHASE_CONV_TABLE phase_conv_loops_avx512
#define PHASE_CONV_NAME  "phases:avx512"

#include "kernels/phase_conv/phase_conv_impl.h"
