/*
 * phase_conv_bf16.c - the loops of phase_conv.h for tensors of BF16: transforms and sums are in
 * floats, and only what is read and written has 16 bits.
 */
#define LANES            16
#define PHASE_CONV_ROWS  14
#define PHASE_CONV_STEP  8
#define PHASE_CONV_TABLE phase_conv_loops_bf16
#define PHASE_CONV_NAME  "phases:bf16"
#define CELL_HALF

#include "kernels/phase_conv/phase_conv_impl.h"
